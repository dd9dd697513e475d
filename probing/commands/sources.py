"""Find the encoders that the options name, and load them."""

import argparse
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hyptrans.commands.text_options import subword_models
from hyptrans.inference.load import locate, read, shipped
from hyptrans.support.errors import UserError
from hyptrans.support.files import sha256
from probing.probes.baselines import BASELINES
from probing.states import huggingface
from probing.states.encoder import WordEncoder
from probing.states.model import ModelEncoder, is_model_folder

_PREPARED = ("data-bin/dict.*.txt", "dict.*.txt", "*.model", "bpe.codes", "manifest.json")
"""Files of a prepared data folder that determine how text becomes token indices."""


@dataclass(frozen=True)
class Subject:
    """An encoder to probe: a trained one, or the same architecture with fresh parameters.

    Attributes:
        name: label of its results.
        folder: folder of its results.
        typed: what the user named: a file, a folder, or a model of this package or of the hub.
        place: the file or folder that this means.
        text: how a checkpoint reads text: the arguments of :func:`hyptrans.load` for it.
        of: for an encoder with fresh parameters, the trained one of the same architecture.
    """

    name: str
    folder: Path
    typed: str
    place: Path
    text: Mapping[str, Any] = field(default_factory=dict)
    of: str = ""

    def states(self, part: str) -> Path:
        """Return the file of a data set's states."""
        return self.folder / f"{part}.states.npy"

    @property
    def space(self) -> Path:
        """Return the file of the figures of its space."""
        return self.folder / "space.pt"

    def made_from(self) -> dict[str, Any]:
        """Return what its states depend on besides the trees and a plug-in's code."""
        data, models = self.text.get("data"), self.text.get("subword_models", {})
        files = [file for one in _PREPARED for file in sorted(data.glob(one))] if data else []
        files += filter(None, models.values())
        return {
            "place": huggingface.identity(self.place),
            "files": [[file.name, sha256(file)] for file in files],
            "text": [*models, self.text.get("moses")],
        }

    def load(self, seed: int) -> WordEncoder:
        """Load the encoder; ``seed`` draws fresh parameters."""
        how: dict[str, Any] = {"random": bool(self.of), "seed": seed}
        if self.place.is_dir() and not is_model_folder(self.place):
            return huggingface.from_hugging_face(self.place, name=self.typed, **how)
        return ModelEncoder(read(self.place, **self.text), self.place, **how)


def subjects_of(args: argparse.Namespace) -> list[Subject]:
    """Return the encoders that the options name, each followed by its random twin if wanted.

    Raises:
        UserError: no encoder is named, a place is missing, ``--data`` is given several times but
            not for each checkpoint, names have the wrong number, coincide or make no folder name,
            or results would go into the folder of an encoder.
    """
    if not (args.checkpoint or args.hf):
        raise UserError("no encoder is named: give --checkpoint FILE or --hf NAME_OR_FOLDER")
    data = args.data or [None]
    data = data * len(args.checkpoint) if len(data) == 1 else data
    if len(data) != len(args.checkpoint):
        raise UserError(f"--data has {len(data)} values for {len(args.checkpoint)} of --checkpoint")
    count = len(args.checkpoint) + len(args.hf)
    if args.names and len(args.names) != count:
        raise UserError(f"--names has {len(args.names)} values for {count} encoders")
    for checkpoint in args.checkpoint:
        if not checkpoint.is_file():
            raise UserError(f"--checkpoint {checkpoint} is not a file")
    text = {"subword_models": subword_models(args), "moses": args.moses}
    sources = [
        (file.resolve().parent.name, str(file), file, text | {"data": own})
        for file, own in zip(args.checkpoint, data, strict=True)
    ]
    for name in args.hf:
        place = locate(name) if name in shipped() else huggingface.folder_of(name)
        own = Path(name).resolve()
        # hyptrans train calls every folder "model": the folder above it names the encoder
        label = own.parent.name if own.name == "model" and own.is_dir() else own.name
        sources.append((label, name, place, {}))
    names = args.names or [label for label, *_ in sources]
    found = []
    for name, (_, typed, place, how) in zip(names, sources, strict=True):
        part = re.sub(r"[^\w.-]", "-", name).strip(".")
        folder = args.out / part
        if place.resolve().is_relative_to(folder.resolve()):
            raise UserError(
                f"--out {args.out} would put results of {name} into the folder that holds {place}: "
                "name another --out, or --names"
            )
        found.append(Subject(name, folder, typed, place, how))
        if not args.no_random:
            fresh = args.out / f"{part}-random"
            found.append(Subject(f"{name}, random", fresh, typed, place, how, of=name))
    labels = {*BASELINES, *(subject.name for subject in found)}
    # some file systems ignore case
    folders = {str(subject.folder).lower() for subject in found}
    alike = len(labels) < len(BASELINES) + len(found) or len(folders) < len(found)
    if alike or args.out in (subject.folder for subject in found):
        raise UserError(f"--names must be letters or digits and differ, got {', '.join(names)}")
    return found
