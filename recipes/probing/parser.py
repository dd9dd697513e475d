"""Stanza's English pipeline: trained on a treebank, scored on its test set, and at work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from hyptrans.support.errors import UserError
from hyptrans.support.extras import require
from recipes.common.runner import Runner
from recipes.common.steps import Step
from recipes.common.translation import Run
from recipes.probing import treebank
from recipes.probing.treebank import PACKAGE

ENGLISH = ("--lang", "en", "--shorthand", f"en_{PACKAGE}", "--save_name", f"{PACKAGE}.pt")
NETWORK = ("--no_pretrain", "--hidden_dim", "200", "--num_layers", "2", "--char_hidden_dim", "100")
SHARED = "--share_hid"
"""One hidden layer for all tags; a bilinear map for each takes six times as long on a CPU."""
BIAFFINE = ("--deep_biaff_hidden_dim", "128")
"""Of the parser; its own 400 take most of a step on a CPU."""
SENTENCES, WORDS = "60", "1500"
"""In a batch of the tagger and of the parser: small ones, for a CPU."""
LOOKS = 10
"""Times that each trainer looks at the development set; it keeps what was best there."""
SCORES = ("upos", "uas", "las")


class Parser:
    """A pipeline of four models.

    Args:
        run: what the recipe's steps share.
        runner: who runs them.
        steps: of the training of each model.
    """

    def __init__(self, run: Run, runner: Runner, steps: int) -> None:
        self._run, self._runner, self._steps = run, runner, steps
        self._files = run.out / "stanza" / "treebank"
        self._models = run.out / "stanza" / "models"
        """As stanza's downloads are."""
        self._trained: list[str] = []

    def train(self, trees: Mapping[str, Path]) -> dict[str, float]:
        """Train all models; return how good they are on words of the test set, with their counts.

        Args:
            trees: CoNLL-U of train, dev and test.
        """

        def prepare() -> None:
            treebank.write(trees, self._files)
            treebank.write_list_of_models(self._models)

        outputs = [self._files, self._models / "resources.json"]
        self._runner.once(
            "parser_treebank", prepare, settings={}, inputs=trees.values(), outputs=outputs
        )
        gold, each = ["--gold_file", self._file("dev.conllu")], str(max(1, self._steps // LOOKS))
        both = ["--train_file", self._file("train.conllu"), "--eval_file", self._file("dev.conllu")]
        looks = ["--max_steps", str(self._steps), "--eval_interval", each]
        flags = ["--txt_file", self._file("train.txt"), "--label_file", self._file("train.labels")]
        flags += ["--dev_txt_file", self._file("dev.txt")]
        flags += ["--dev_label_file", self._file("dev.labels")]
        flags += ["--dev_conll_gold", self._file("dev.conllu")]
        flags += ["--mwt_json_file", self._file("dev.mwt.json")]
        flags += ["--steps", str(self._steps), "--eval_steps", each]
        self._train("tokenize", "tokenizer", flags)
        # English has few of them: a list does
        self._train("mwt", "mwt_expander", [*both, *gold, "--dict_only"])
        network = [*both, *NETWORK]
        self._train("pos", "tagger", [*network, "--batch_size", SENTENCES, *looks, SHARED])
        # the only one of them that goes on where it was stopped
        own = [*BIAFFINE, "--no_second_optim"]
        flags = [*network, "--batch_size", WORDS, *looks, *own]
        self._train("depparse", "parser", flags, resumes=True)
        parsed = self._run.out / "stanza" / "test.parsed.conllu"
        self.parse("parser_test", self._files / "test.words", parsed, "--pretokenized")
        return accuracy(self._files / "test.conllu", parsed)

    def parse(self, name: str, text: Path, out: Path, flag: str = "") -> None:
        """Parse a text with the trained models; ``flag`` says otherwise than a sentence a line."""
        command = ["python", "-m", "probing", "annotate", "--text", str(text), "--out", str(out)]
        command += ["--stanza-dir", str(self._models), flag or "--one-sentence-per-line"]
        command += self._run.device
        threads = self._run.threads
        self._runner.run(Step(name, command, [out], self._trained, threads, inputs=[text]))

    def _train(
        self, folder: str, module: str, flags: Sequence[str], *, resumes: bool = False
    ) -> None:
        place, name = self._models / "en" / folder, f"parser_{folder}"
        command = ["python", "-m", f"stanza.models.{module}", *flags, *ENGLISH, *self._run.device]
        command += ["--save_dir", str(place)]
        outputs = [place / f"{PACKAGE}.pt"]
        if resumes:
            # which stanza goes on from, whatever it was made with
            outputs.append(place / f"{PACKAGE}_checkpoint.pt")
        after = self._trained[-1:] or ["parser_treebank"]
        threads = self._run.threads
        self._runner.run(Step(name, command, outputs, after, threads, resumes=resumes))
        self._trained.append(name)

    def _file(self, name: str) -> str:
        return str(self._files / name)


def accuracy(gold: Path, parsed: Path) -> dict[str, float]:
    """Compare parses with gold trees of the same words, by the scorer of stanza's trainers.

    LAS counts words whose head and relation are right, a relation without its subtype
    (``nmod:poss`` is ``nmod``), as the CoNLL 2018 shared task does; all words count, punctuation
    too.

    Returns:
        ``upos``, ``uas`` and ``las``, from 0 to 1, and the numbers of ``words`` and ``sentences``.

    Raises:
        UserError: the parses are of other words.
    """
    stanza = require("stanza.models.common.utils", "probing")
    try:
        scored = stanza.ud_scores(str(gold), str(parsed))
    except stanza.UDError as error:
        raise UserError(f"{parsed} has other words than {gold}: {error}") from None
    found = {name: scored[name.upper()].f1 for name in SCORES}
    return found | {name: scored[name.title()].gold_total for name in ("words", "sentences")}
