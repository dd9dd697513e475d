"""Stanza's English pipeline: trained on a treebank, scored on its test set, and at work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from hyptrans.support import steps
from hyptrans.support.errors import UserError
from hyptrans.support.extras import require
from hyptrans.support.steps import Step
from recipes.common.translation import Run, step
from recipes.probing import treebank
from recipes.probing.treebank import PACKAGE

ENGLISH = ("--lang", "en", "--shorthand", f"en_{PACKAGE}", "--save_name", f"{PACKAGE}.pt")
NETWORK = ("--no_pretrain", "--hidden_dim", "200", "--num_layers", "2", "--char_hidden_dim", "100")
SMALL = {
    # one hidden layer for all tags; a bilinear map for each takes six times as long on a CPU
    "pos": ("--batch_size", "60", "--share_hid"),
    # of the parser; its own 400 take most of a step on a CPU
    "depparse": ("--batch_size", "1500", "--deep_biaff_hidden_dim", "128", "--no_second_optim"),
}
"""What suits a CPU."""
LOOKS = 10
"""Times that each trainer looks at the development set; it keeps what was best there."""
SCORES = ("upos", "uas", "las")


class Parser:
    """A pipeline of four models.

    Args:
        run: what the recipe's commands share.
        steps: of the training of each model.
    """

    def __init__(self, run: Run, steps: int) -> None:
        self._run, self._steps = run, steps
        self._files = run.out / "stanza" / "treebank"
        self._models = run.out / "stanza" / "models"
        """As stanza's downloads are."""

    def train(self, trees: Mapping[str, Path]) -> dict[str, float]:
        """Train all models; return how good they are on words of the test set, with their counts.

        Args:
            trees: CoNLL-U of train, dev and test.
        """

        def prepare() -> None:
            treebank.write(trees, self._files)
            treebank.write_list_of_models(self._models)

        outputs = [self._files, self._models / "resources.json"]
        settings = {"trees": [path.name for path in trees.values()]}
        steps.run([Step("parser_treebank", outputs, prepare, settings)], self._run.out)
        every = str(max(1, self._steps // LOOKS))
        looks = ["--max_steps", str(self._steps), "--eval_interval", every]
        file = {path.name: str(path) for path in self._files.iterdir()}
        both = ["--train_file", file["train.conllu"], "--eval_file", file["dev.conllu"]]
        flags = ["--txt_file", file["train.txt"], "--label_file", file["train.labels"]]
        flags += ["--dev_txt_file", file["dev.txt"], "--dev_label_file", file["dev.labels"]]
        flags += ["--dev_conll_gold", file["dev.conllu"], "--mwt_json_file", file["dev.mwt.json"]]
        flags += ["--steps", str(self._steps), "--eval_steps", every]
        self._train("tokenize", "tokenizer", flags)
        # English has few of them: a list does
        gold = ["--gold_file", file["dev.conllu"], "--dict_only"]
        self._train("mwt", "mwt_expander", [*both, *gold])
        for folder, module in (("pos", "tagger"), ("depparse", "parser")):
            self._train(folder, module, [*both, *NETWORK, *SMALL[folder], *looks])
        parsed = self._run.out / "stanza" / "test.parsed.conllu"
        self.parse("parser_test", self._files / "test.words", parsed, "--pretokenized")
        return accuracy(self._files / "test.conllu", parsed)

    def parse(self, name: str, text: Path, out: Path, flag: str = "") -> None:
        """Parse a text, a sentence a line unless ``flag`` says otherwise."""
        command = ["hyptrans", "probe", "annotate", "--text", str(text), "--out", str(out)]
        command += ["--stanza-dir", str(self._models), flag or "--one-sentence-per-line"]
        models = sorted(self._models.glob(f"en/*/{PACKAGE}.pt"))
        self._do(command, name, [out], [text, *models])

    def _train(self, folder: str, module: str, flags: Sequence[str]) -> None:
        place = self._models / "en" / folder
        command = ["python", "-m", f"stanza.models.{module}", *flags, *ENGLISH]
        outputs = [place / f"{PACKAGE}.pt"]
        # stanza would go on from this one, whatever made it: with the outputs it is removed first
        outputs += [place / f"{PACKAGE}_checkpoint.pt"] if folder == "depparse" else []
        command += ["--save_dir", str(place)]
        self._do(command, f"parser_{folder}", outputs, [self._files])

    def _do(
        self, command: Sequence[str], name: str, outputs: Sequence[Path], inputs: Sequence[Path]
    ) -> None:
        out, threads = self._run.out, self._run.threads
        steps.run([step(command, name, out, outputs, inputs=inputs, threads=threads)], out)


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
