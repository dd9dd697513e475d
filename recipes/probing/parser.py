"""The steps that train stanza's English pipeline on a treebank and parse text with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from recipes.common.steps import Step
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


@dataclass(frozen=True)
class Parser:
    """A pipeline to train.

    Attributes:
        out: folder of its files.
        trees: CoNLL-U of train, dev and test.
        steps: of the training of each of its models.
        threads: CPU threads of each command.
        cpu: keep off the GPU.
    """

    out: Path
    trees: Mapping[str, Path]
    steps: int
    threads: int
    cpu: bool

    @property
    def models(self) -> Path:
        """Folder as stanza's downloads are."""
        return self.out / "models"

    @property
    def accuracy(self) -> Path:
        """How good it is on the test set."""
        return self.out / "accuracy.json"

    def training(self) -> list[Step]:
        """The steps, in their order: the treebank's files, four models, and how good they are."""
        command = ["python", "-m", "recipes.probing.treebank", "--out", str(self.out)]
        for name, path in self.trees.items():
            command += [f"--{name}", str(path)]
        outputs = [self.out / "treebank", self.models / "resources.json"]
        prepared = Step("parser_treebank", command, outputs, inputs=[*self.trees.values()])
        tokenizer = self._model("tokenizer", "tokenize", self._tokenizer_flags(), prepared)
        expander = self._model("mwt_expander", "mwt", self._expander_flags(), tokenizer)
        flags = [*self._network_flags(SENTENCES), SHARED]
        tagger = self._model("tagger", "pos", flags, expander)
        # the only one of them that goes on where it was stopped
        flags = [*self._network_flags(WORDS), *BIAFFINE, "--no_second_optim"]
        parser = self._model("parser", "depparse", flags, tagger, resumes=True)
        words, parsed = self._file("test.words"), self.out / "test.parsed.conllu"
        models = [tokenizer, expander, tagger, parser]
        tested = self.parse("parser_test", Path(words), parsed, models, "--pretokenized")
        command = ["python", "-m", "recipes.probing.accuracy", "--gold", self._file("test.conllu")]
        command += ["--parsed", str(parsed), "--out", str(self.accuracy)]
        scored = Step("parser_accuracy", command, [self.accuracy], [tested])
        return [prepared, *models, tested, scored]

    def parse(self, name: str, text: Path, out: Path, after: Sequence[Step], *flags: str) -> Step:
        """Parse a text with the trained models."""
        command = ["python", "-m", "probing", "annotate", "--text", str(text), "--out", str(out)]
        command += ["--stanza-dir", str(self.models), *flags, *self._device()]
        return Step(name, command, [out], after, self.threads)

    def _model(
        self, module: str, folder: str, flags: list[str], after: Step, *, resumes: bool = False
    ) -> Step:
        place = self.models / "en" / folder
        command = ["python", "-m", f"stanza.models.{module}", *flags, *ENGLISH, *self._device()]
        command += ["--save_dir", str(place)]
        outputs = [place / f"{PACKAGE}.pt"]
        if resumes:
            # which stanza goes on from, whatever it was made with
            outputs.append(place / f"{PACKAGE}_checkpoint.pt")
        name = f"parser_{folder}"
        return Step(name, command, outputs, [after], self.threads, resumes=resumes)

    def _device(self) -> list[str]:
        return ["--cpu"] if self.cpu else []

    def _file(self, name: str) -> str:
        return str(self.out / "treebank" / name)

    def _tokenizer_flags(self) -> list[str]:
        flags = ["--txt_file", self._file("train.txt"), "--label_file", self._file("train.labels")]
        flags += ["--dev_txt_file", self._file("dev.txt")]
        flags += ["--dev_label_file", self._file("dev.labels")]
        flags += ["--dev_conll_gold", self._file("dev.conllu")]
        flags += ["--mwt_json_file", self._file("dev.mwt.json")]
        return [*flags, "--steps", str(self.steps), "--eval_steps", self._each()]

    def _expander_flags(self) -> list[str]:
        # English has few of them: a list does
        return [*self._trees(), "--gold_file", self._file("dev.conllu"), "--dict_only"]

    def _network_flags(self, batch_size: str) -> list[str]:
        flags = [*self._trees(), *NETWORK, "--batch_size", batch_size]
        return [*flags, "--max_steps", str(self.steps), "--eval_interval", self._each()]

    def _trees(self) -> list[str]:
        train, dev = self._file("train.conllu"), self._file("dev.conllu")
        return ["--train_file", train, "--eval_file", dev]

    def _each(self) -> str:
        return str(max(1, self.steps // LOOKS))
