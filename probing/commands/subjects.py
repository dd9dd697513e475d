"""The encoders that a run compares."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hyptrans.support.errors import UserError
from probing.commands.sources import Source
from probing.probes.baselines import BASELINES


@dataclass(frozen=True)
class Subject:
    """An encoder to probe: a trained one, or the same architecture with fresh parameters."""

    name: str
    folder: Path
    source: Source
    of: str = ""
    """The trained encoder that has the architecture, of one with fresh parameters."""

    @property
    def random(self) -> bool:
        """Its parameters are fresh ones."""
        return bool(self.of)

    def states(self, part: str) -> Path:
        """The file of the states of a data set."""
        return self.folder / f"{part}.states.safetensors"


def subjects_of(
    sources: Sequence[Source], names: Sequence[str] | None, out: Path, *, random: bool
) -> list[Subject]:
    """The encoders of a run, each followed by its random twin if wanted.

    Args:
        sources: of the trained ones.
        names: labels, by default the folders that they lie in.
        out: the run's folder.
        random: whether to add the same architectures with fresh parameters.

    Raises:
        UserError: names that do not fit, or are no names of folders.
    """
    names = names or _names(sources)
    if len(names) != len(sources):
        raise UserError(f"--names has {len(names)} values for {len(sources)} encoders")
    folders = [re.sub(r"[^\w.-]", "-", name).strip(".") for name in names]
    found = []
    for name, folder, source in zip(names, folders, sources, strict=True):
        found.append(Subject(name, out / folder, source))
        if random:
            found.append(Subject(f"{name}, random", out / f"{folder}-random", source, of=name))
    labels = [*BASELINES, *(subject.name for subject in found)]
    # upper and lower case are one on some disks
    places = [str(subject.folder).lower() for subject in found]
    if not all(folders) or len(set(labels)) < len(labels) or len(set(places)) < len(places):
        raise UserError(f"--names must be letters or digits and differ, got {', '.join(names)}")
    return found


def _names(sources: Sequence[Source]) -> list[str]:
    """The sources' own names, with those of their files where folders are the same."""
    labels = [source.label for source in sources]
    if len(set(labels)) == len(labels):
        return labels
    return [
        f"{label}/{Path(source.name).stem}" for label, source in zip(labels, sources, strict=True)
    ]
