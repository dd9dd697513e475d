"""Where the files of a data set are at each stage, a folder a stage."""

from dataclasses import dataclass
from pathlib import Path

from hyptrans.dataprep.plan import Job, Plan
from hyptrans.dataprep.steps.subwords import MODEL_NAMES


@dataclass(frozen=True)
class Layout:
    """The places of a data set's files; of two files, the source comes first.

    Attributes:
        plan: which sets there are, and which stages they go through.
        job: languages.
        work: the folder of all stages.
    """

    plan: Plan
    job: Job
    work: Path

    @property
    def result(self) -> Path:
        """The folder of what the user gets, put in place when all of it is there."""
        return self.work / "result"

    @property
    def tests(self) -> list[str]:
        """The names of the test sets."""
        return [name for name in self.plan.sets if name.startswith("test")]

    def files(self, stage: str, name: str) -> tuple[Path, Path]:
        """Return the files of both sides; the raw test sets are part of the result."""
        final = stage == "raw" and name in self.tests
        folder = (self.result if final else self.work) / stage
        source, target = (folder / f"{name}.{lang}" for lang in self.job.languages)
        return source, target

    def text(self, name: str) -> tuple[Path, Path]:
        """Return the files of a set just before subwords."""
        if name == "train" or (name == "valid" and self.plan.held_out):
            return self.files("clean", name)
        return self.files("text" if self.plan.text.get(name) else "raw", name)

    def encoded(self, name: str) -> tuple[Path, Path]:
        """Return the files that fairseq binarizes."""
        cleaned = self.plan.clean_subwords and not name.startswith("test")
        return self.files("final" if cleaned else "encoded", name)

    def notes(self, stage: str) -> list[Path]:
        """Return what was noted of the training text, a file a language."""
        return [self.work / "seen" / f"{stage}.{lang}" for lang in self.job.languages]

    @property
    def binarized(self) -> Path:
        """What fairseq trains on."""
        return self.result / "data-bin"

    @property
    def model(self) -> Path | None:
        """The subword model, None where there are no subwords."""
        name = MODEL_NAMES.get(self.job.bpe)
        return self.result / name if name else None

    def finished(self) -> list[Path]:
        """Return the files of the result; a run that was killed may have left others beside."""
        files = sorted(path for path in self.binarized.iterdir() if path.is_file())
        return [
            *files,
            *(path for name in self.tests for path in self.files("raw", name)),
            *([self.model] if self.model else []),
        ]
