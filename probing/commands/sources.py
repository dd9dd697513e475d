"""Find the encoders that the options name, and load them."""

import argparse
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hyptrans.commands.text_options import subword_models
from hyptrans.inference.load import read
from hyptrans.support.errors import UserError
from hyptrans.support.files import sha256
from probing.probes.baselines import BASELINES
from probing.states import huggingface
from probing.states.encoder import WordEncoder
from probing.states.model import ModelEncoder, is_model_folder, place_of

_PREPARED = ("data-bin/dict.*.txt", "dict.*.txt", "*.model", "bpe.codes", "manifest.json")
"""Files of a prepared data folder that determine how text becomes token indices."""


@dataclass(frozen=True)
class Source:
    """A trained encoder: a checkpoint of fairseq, or a folder or name of Hugging Face's format.

    Attributes:
        name: the file or folder, or the name of a model of this package or of the hub.
        data: folder that ``hyptrans prepare`` wrote for the checkpoint.
        hf: whether it is in Hugging Face's format or a model folder.
        subwords: subword model by its kind, if the data folder does not name it.
        moses: whether to tokenize as Moses does, likewise.
    """

    name: str
    data: Path | None = None
    hf: bool = False
    subwords: Mapping[str, Path | None] = field(default_factory=dict)
    moses: bool = False

    @property
    def place(self) -> Path:
        """Return the file or folder of the name."""
        return place_of(self.name)

    @property
    def label(self) -> str:
        """Return the checkpoint's folder name, or the model's own name."""
        path = self.place
        if self.hf:
            return path.resolve().name if path.is_dir() else path.name
        return path.resolve().parent.name

    def made_from(self) -> dict[str, Any]:
        """Return what its states depend on besides the text and a plug-in's code."""
        if self.hf:
            return {"hf": huggingface.identity(str(self.place))}
        data = _hashes(self.data, _PREPARED) if self.data else {}
        models = {kind: model and sha256(model) for kind, model in self.subwords.items()}
        return {"checkpoint": sha256(self.place), "data": data, "text": [models, self.moses]}

    def load(self, *, random: bool, seed: int) -> WordEncoder:
        """Load the encoder, or its architecture with fresh parameters.

        Raises:
            UserError: a file, flag or value is wrong.
        """
        place = self.place
        if self.hf and not (place.is_dir() and is_model_folder(place)):
            return huggingface.from_hugging_face(self.name, random=random, seed=seed)
        text: dict[str, Any] = (
            {} if self.hf else {"subword_models": self.subwords, "moses": self.moses}
        )
        contents = read(place, data=self.data, **text)
        return ModelEncoder(contents, place, random=random, seed=seed)


def _hashes(folder: Path, patterns: Sequence[str]) -> dict[str, str]:
    files = {file for pattern in patterns for file in folder.glob(pattern) if file.is_file()}
    return {str(file.relative_to(folder)): sha256(file) for file in sorted(files)}


def sources_of(args: argparse.Namespace) -> list[Source]:
    """Return the encoders that the options name, checkpoints first.

    Raises:
        UserError: none is named, ``--data`` is given neither never, once nor for each checkpoint,
            or a checkpoint is missing.
    """
    checkpoints: Sequence[Path] = args.checkpoint
    if not (checkpoints or args.hf):
        raise UserError("no encoder is named: give --checkpoint FILE or --hf NAME_OR_FOLDER")
    data = args.data or [None]
    data = data * len(checkpoints) if len(data) == 1 else data
    if len(data) != len(checkpoints):
        raise UserError(f"--data has {len(data)} values for {len(checkpoints)} of --checkpoint")
    for checkpoint in checkpoints:
        if not checkpoint.is_file():
            raise UserError(f"--checkpoint {checkpoint} is not a file")
    text = {"subwords": subword_models(args), "moses": args.moses}
    found = [Source(str(file), own, **text) for file, own in zip(checkpoints, data, strict=True)]
    return found + [Source(name, hf=True) for name in args.hf]


@dataclass(frozen=True)
class Subject:
    """An encoder to probe: a trained one, or the same architecture with fresh parameters."""

    name: str
    folder: Path
    source: Source
    of: str = ""
    """For an encoder with fresh parameters, the trained one of the same architecture."""

    @property
    def random(self) -> bool:
        """Return whether its parameters are fresh."""
        return bool(self.of)

    def states(self, part: str) -> Path:
        """Return the file of a data set's states."""
        return self.folder / f"{part}.states.npy"

    @property
    def space(self) -> Path:
        """Return the file of the figures of its space."""
        return self.folder / "space.pt"

    def load(self, seed: int) -> WordEncoder:
        """Load the encoder; ``seed`` draws fresh parameters."""
        return self.source.load(random=self.random, seed=seed)


def subjects_of(
    sources: Sequence[Source], names: Sequence[str] | None, out: Path, *, random: bool
) -> list[Subject]:
    """Return the encoders of a run, each followed by its random twin if wanted.

    Args:
        sources: sources of the trained encoders.
        names: labels, by default the names of their folders.
        out: the run's folder.
        random: whether to add the same architectures with fresh parameters.

    Raises:
        UserError: names have the wrong number, coincide or make no folder name, or results would
            go into the folder of an encoder.
    """
    names = names or _names(sources)
    if len(names) != len(sources):
        raise UserError(f"--names has {len(names)} values for {len(sources)} encoders")
    folders = [re.sub(r"[^\w.-]", "-", name).strip(".") for name in names]
    found = []
    for name, folder, source in zip(names, folders, sources, strict=True):
        place = source.place
        if place.exists() and place.resolve().is_relative_to((out / folder).resolve()):
            raise UserError(
                f"--out {out} would put results of {name} into the folder that holds {place}: name "
                "another --out, or --names"
            )
        found.append(Subject(name, out / folder, source))
        if random:
            found.append(Subject(f"{name}, random", out / f"{folder}-random", source, of=name))
    labels = [*BASELINES, *(subject.name for subject in found)]
    # some file systems ignore case
    places = [str(subject.folder).lower() for subject in found]
    if not all(folders) or len(set(labels)) < len(labels) or len(set(places)) < len(places):
        raise UserError(f"--names must be letters or digits and differ, got {', '.join(names)}")
    return found


def _names(sources: Sequence[Source]) -> list[str]:
    """Return the sources' labels, extended by their file names if labels coincide."""
    labels = [source.label for source in sources]
    if len(set(labels)) == len(labels):
        return labels
    return [
        f"{label}/{Path(source.name).stem}" for label, source in zip(labels, sources, strict=True)
    ]
