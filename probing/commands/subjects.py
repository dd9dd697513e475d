"""The encoders that a run compares."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hyptrans.support.errors import UserError
from probing.probes.baselines import BASELINES


@dataclass(frozen=True)
class Subject:
    """An encoder to probe: a checkpoint's, or the same architecture with fresh parameters."""

    name: str
    folder: Path
    checkpoint: Path
    data: Path | None
    random: bool = False

    def probes(self, kind: str) -> Path:
        """The file of its probes of a kind."""
        return self.folder / f"{kind}.probes.safetensors"

    def states(self, part: str) -> Path:
        """The file of the states of a data set."""
        return self.folder / f"{part}.states.safetensors"


def subjects_of(
    checkpoints: Sequence[Path],
    data: Sequence[Path],
    names: Sequence[str] | None,
    out: Path,
    *,
    random: bool,
) -> list[Subject]:
    """The encoders that options of a run ask for, each followed by its random twin if wanted.

    Args:
        checkpoints: files.
        data: a prepared folder for all of them, one for each, or none.
        names: labels, by default the checkpoints' folders.
        out: the run's folder.
        random: whether to add the same architectures with fresh parameters.

    Raises:
        UserError: numbers of names or data folders that do not fit, or a missing checkpoint.
    """
    folders_of_data: list[Path | None] = [*data] or [None]
    if len(folders_of_data) == 1:
        folders_of_data *= len(checkpoints)
    names = names or _names(checkpoints)
    for option, values in (("--data", folders_of_data), ("--names", names)):
        if len(values) != len(checkpoints):
            raise UserError(
                f"{option} has {len(values)} values for {len(checkpoints)} of --checkpoint"
            )
    folders = [re.sub(r"[^\w.-]", "-", name).strip(".") for name in names]
    for checkpoint in checkpoints:
        if not checkpoint.is_file():
            raise UserError(f"--checkpoint {checkpoint} is not a file")
    found = []
    for name, folder, checkpoint, where in zip(
        names, folders, checkpoints, folders_of_data, strict=True
    ):
        found.append(Subject(name, out / folder, checkpoint, where))
        if random:
            twin = out / f"{folder}-random"
            found.append(Subject(f"{name}, random", twin, checkpoint, where, random=True))
    labels = [*BASELINES, *(subject.name for subject in found)]
    # upper and lower case are one on some disks
    places = [str(subject.folder).lower() for subject in found]
    if not all(folders) or len(set(labels)) < len(labels) or len(set(places)) < len(places):
        raise UserError(f"--names must be letters or digits and differ, got {', '.join(names)}")
    return found


def _names(checkpoints: Sequence[Path]) -> list[str]:
    """The checkpoints' folders, or files where those are the same."""
    folders = [checkpoint.resolve().parent.name for checkpoint in checkpoints]
    if len(set(folders)) == len(folders):
        return folders
    return [f"{folder}/{c.stem}" for folder, c in zip(folders, checkpoints, strict=True)]
