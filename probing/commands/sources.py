"""Where encoders come from: the options that name them, and how they are loaded."""

import argparse
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from hyptrans.support.errors import UserError
from hyptrans.support.files import sha256
from probing.commands.options import filled
from probing.probes.baselines import BASELINES
from probing.states import huggingface
from probing.states.encoder import WordEncoder
from probing.text import segment

_PREPARED = ("data-bin/dict.*.txt", "dict.*.txt", "*.model", "bpe.codes", "manifest.json")
"""The files of a prepared data folder that decide how text becomes numbers."""


@dataclass(frozen=True)
class Source:
    """A trained encoder: a checkpoint of fairseq, or a folder or name of Hugging Face's format.

    Attributes:
        name: the file, folder or name.
        data: folder that ``data-prep/`` wrote for the checkpoint.
        pieces: how the checkpoint reads text, where the folder does not say so.
        user_dir: plug-in of fairseq that has its architecture.
        hf: it is of Hugging Face's format.
    """

    name: str
    data: Path | None = None
    pieces: segment.Options = field(default_factory=segment.Options)
    user_dir: str | None = None
    hf: bool = False

    @property
    def label(self) -> str:
        """The folder that it lies in, or its own name."""
        path = Path(self.name)
        if self.hf:
            return path.resolve().name if path.is_dir() else path.name
        return path.resolve().parent.name

    def made_from(self) -> dict[str, Any]:
        """What its states depend on besides the text.

        Raises:
            UserError: a file or folder of its options is missing.
        """
        if self.hf:
            return {"hf": huggingface.identity(self.name)}
        given = asdict(self.pieces)
        for name, value in given.items():
            if isinstance(value, Path) and not value.exists():
                raise UserError(f"--{name.replace('_', '-')} {value} is missing")
        return {
            "checkpoint": sha256(Path(self.name)),
            "data": of_data(self.data) if self.data else {},
            "pieces": {name: _contents(value) for name, value in given.items()},
            "user_dir": _plugin(self.user_dir),
        }

    def load(self, *, random: bool, seed: int) -> WordEncoder:
        """The encoder, or its architecture with fresh parameters.

        Raises:
            UserError: a file, flag or value that is wrong.
        """
        if self.hf:
            return huggingface.from_hugging_face(self.name, random=random, seed=seed)
        # fairseq comes with it, which encoders of Hugging Face's format do without
        from probing.states.checkpoint import from_checkpoint

        return from_checkpoint(
            Path(self.name),
            data=self.data,
            random=random,
            seed=seed,
            user_dir=self.user_dir,
            pieces=self.pieces,
        )


def sources_of(args: argparse.Namespace) -> list[Source]:
    """The encoders that were asked for, checkpoints first.

    Raises:
        UserError: none, numbers of data folders that do not fit, or a missing checkpoint.
    """
    checkpoints: Sequence[Path] = args.checkpoint
    if not (checkpoints or args.hf):
        raise UserError("no encoder is named: give --checkpoint FILE or --hf NAME_OR_FOLDER")
    data: list[Path | None] = [*args.data] or [None]
    if len(data) == 1:
        data *= len(checkpoints)
    if len(data) != len(checkpoints):
        raise UserError(f"--data has {len(data)} values for {len(checkpoints)} of --checkpoint")
    for checkpoint in checkpoints:
        if not checkpoint.is_file():
            raise UserError(f"--checkpoint {checkpoint} is not a file")
    found = [of_checkpoint(args, file, own) for file, own in zip(checkpoints, data, strict=True)]
    return found + [Source(name, hf=True) for name in args.hf]


def only_source(args: argparse.Namespace) -> Source:
    """The encoder of a command that takes one.

    Raises:
        UserError: there is none, or there are several.
    """
    found = sources_of(args)
    if len(found) > 1:
        raise UserError(f"one encoder is taken at a time, {len(found)} are named")
    return found[0]


def of_checkpoint(args: argparse.Namespace, file: Path, data: Path | None) -> Source:
    """A checkpoint, read as the options of ``add_model_arguments`` say.

    Raises:
        UserError: a step of text is named where a data folder says which there are.
    """
    pieces = filled(segment.Options, args)
    ways = segment.ways(pieces)
    if ways and data and not (pieces.sentencepiece_model or pieces.bpe_codes):
        raise UserError(
            f"{ways[0]} goes with --sentencepiece-model or --bpe-codes: {data} itself says what "
            "happens to text before pieces"
        )
    return Source(str(file), data, pieces, args.user_dir)


def _contents(value: Any) -> Any:
    if not isinstance(value, Path):
        return value
    return of_data(value) if value.is_dir() else sha256(value)


def _plugin(user_dir: str | None) -> Any:
    """What a plug-in's programs are; what Python keeps beside them says nothing new."""
    if user_dir is None or not Path(user_dir).is_dir():
        return user_dir
    folder = Path(user_dir)
    return {str(file.relative_to(folder)): sha256(file) for file in sorted(folder.rglob("*.py"))}


def of_data(folder: Path) -> dict[str, str]:
    """Hashes of what a prepared data folder says of pieces and their numbers."""
    files = {file for pattern in _PREPARED for file in folder.glob(pattern) if file.is_file()}
    return {str(file.relative_to(folder)): sha256(file) for file in sorted(files)}


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
