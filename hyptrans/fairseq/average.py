"""Average the checkpoints of one training."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from geoopt import ManifoldParameter
from omegaconf import OmegaConf
from torch import Tensor

from hyptrans.fairseq.checkpoint import (
    DICTIONARIES,
    LAST,
    architecture_of,
    parameters_of,
    read_state,
    updates_of,
)
from hyptrans.geometry import lorentz
from hyptrans.inference.architecture import outline
from hyptrans.inference.contents import AVERAGED
from hyptrans.inference.dictionary import Size
from hyptrans.layers.manifold import StableLorentz
from hyptrans.seq2seq.version import KEY
from hyptrans.support.errors import UserError
from hyptrans.support.files import check_is_checkpoint, whole_file
from hyptrans.support.progress import bar

Model = tuple[str, dict[str, Any]]
"""Architecture and options."""
_COPIES = ("checkpoint_best", "checkpoint_crash")
"""Prefixes of file names that are copies or serve another purpose."""


class _Known(NamedTuple):
    """A checkpoint of a folder, with the facts that decide whether it is chosen."""

    path: Path
    updates: int
    loss: float | None
    is_average: bool


def choose(folder: Path, *, last: int | None = None, best: int | None = None) -> list[Path]:
    """Choose checkpoints of a folder and return them in the order in which they were written.

    Args:
        folder: the ``--save-dir`` of ``fairseq-train``.
        last: how many of the newest to take.
        best: how many of the best to take, by the metric that picked the training's best one.

    Raises:
        UserError: the folder has too few checkpoints.
    """
    count = last if best is None else best
    if count is None or count < 1:
        raise UserError(f"at least 1 checkpoint is to be chosen, not {count}")
    found = [path for path in folder.glob("checkpoint*.pt") if not path.name.startswith(_COPIES)]
    if best is not None:
        found = [path for path in found if path.name != LAST]
    # of several files with the same updates the last counts: --keep-best-checkpoints rewrites some,
    # and checkpoint_last.pt is usually a copy
    found.sort(key=lambda path: (path.name != LAST, path.name))
    known = list({one.updates: one for one in map(_look, found) if not one.is_average}.values())
    if best is None:
        known.sort(key=lambda one: -one.updates)
    else:
        known = [one for one in known if one.loss is not None]
        known.sort(key=lambda one: one.loss or 0.0)
    if len(known) < count:
        raise UserError(
            f"{folder} has {len(known)} checkpoints to choose {count} from: keep more of them with "
            "--save-interval-updates and --keep-interval-updates of fairseq-train"
        )
    return [one.path for one in sorted(known[:count], key=lambda one: one.updates)]


def _look(path: Path) -> _Known:
    state = read_state(path)
    extra = state.get("extra_state") or {}
    loss = extra.get("val_loss")
    if not isinstance(loss, (int, float)) or not math.isfinite(loss):
        loss = None
    elif getattr(state["cfg"].checkpoint, "maximize_best_checkpoint_metric", False):
        loss = -loss
    return _Known(path, updates_of(state) or 0, loss, AVERAGED in extra)


def average(paths: Sequence[Path]) -> dict[str, Any]:
    """Return a checkpoint with the average parameters of several, and all else of the last.

    Ordinary parameters become their mean, points of a manifold their Lorentz centroid (HyboNet
    eq. 4), which is again a point; both in float64. The result has no state of the optimizer, and
    notes after how many updates each checkpoint was written.

    Raises:
        UserError: the checkpoints are of different models, or of one that cannot be loaded.
    """
    if not paths:
        raise UserError("no checkpoint was named")
    for path in paths:
        if path.is_dir():
            raise UserError(f"{path} is a folder: choose from it with --last N or --best N")
        check_is_checkpoint(path)
    sums: dict[str, Tensor] = {}
    updates: list[int] = []
    made: list[Model] = []
    known: dict[str, Any] = {}
    state: dict[str, Any] = {}
    for path in bar(paths, "average", len(paths), " checkpoints"):
        state = read_state(path)
        parameters = parameters_of(path, state)
        _add(sums, parameters, paths[0], path)
        updates.append(updates_of(state) or 0)
        made.append(architecture_of(path, state))
        _check_same(made[0], made[-1], paths[0], path)
        words = state.get(DICTIONARIES)
        if words is not None and known.setdefault(DICTIONARIES, words) != words:
            raise UserError(f"{path} and {paths[0]} were trained with other dictionaries")
    points = _points(paths[-1], made[-1], parameters)
    means = {
        name: _mean(total, len(paths), points.get(name)).to(parameters[name].dtype)
        for name, total in sums.items()
    }
    state["model"] = _shared(means, parameters)
    state["last_optimizer_state"] = None
    state["extra_state"] = {**(state.get("extra_state") or {}), AVERAGED: updates}
    # plain values, as fairseq stores them; references stay unresolved
    state["cfg"] = OmegaConf.to_container(state["cfg"], resolve=False, enum_to_str=True)
    return state


def check_out(out: Path, inputs: Sequence[Path] = ()) -> None:
    """Refuse, before anything is read, an output path at which an average would do harm.

    Args:
        out: where to write the average.
        inputs: the checkpoints to average.

    Raises:
        UserError: the path is an input, the checkpoint that a training resumes from, or an
            existing file that is no average.
    """
    if out.name == LAST:
        raise UserError(
            f"--out {out} is what fairseq-train goes on from, and an average has no state of the "
            "optimizer for that: name another file"
        )
    for path in inputs:
        if out.exists() and path.exists() and out.samefile(path):
            raise UserError(f"--out {out} is one of the checkpoints to average: name another file")
    if out.exists() and not _is_average(out):
        raise UserError(f"--out {out} is there already and is no average: name another file")


def _is_average(path: Path) -> bool:
    try:
        return _look(path).is_average
    except UserError:
        return False


def write(state: Mapping[str, Any], out: Path) -> None:
    """Write a checkpoint, whole or not at all.

    Raises:
        UserError: the disk is full, or the file cannot be written for another reason.
    """
    try:
        with whole_file(out) as file:
            torch.save(dict(state), file)
    except RuntimeError as error:
        # torch raises its own error, with the system's as its context
        if isinstance(error.__context__, OSError):
            raise UserError(f"{out} cannot be written ({error.__context__.strerror})") from error
        raise


def _add(sums: dict[str, Tensor], found: Mapping[str, Tensor], first: Path, path: Path) -> None:
    """Add a checkpoint's parameters to the sums; names and shapes must match the first's."""
    others = bool(sums)
    for name in {**sums, **found}:
        tensor, total = found.get(name), sums.get(name)
        if tensor is None or (others and (total is None or total.shape != tensor.shape)):
            raise UserError(f"{path} and {first} are of different models: {name} differs")
        if not tensor.is_floating_point():
            # a training resumed under a later version has the version numbers of both
            if total is not None and name != KEY and not torch.equal(total, tensor):
                raise UserError(f"{path} and {first} are of different models: {name} differs")
            sums[name] = tensor.clone()
        elif not tensor.isfinite().all():
            raise UserError(f"{path} has numbers that are not finite, in {name}: take earlier ones")
        else:
            sums[name] = tensor.double() if total is None else total + tensor.double()


def _check_same(one: Model, other: Model, first: Path, path: Path) -> None:
    """Refuse parameters of the same shapes that belong to other formulas."""
    if one[0] != other[0]:
        raise UserError(f"{path} and {first} are of different models: {other[0]} and {one[0]}")
    for name in {**one[1], **other[1]}:
        # dropout may change when a training is resumed
        if "drop" not in name and one[1].get(name) != other[1].get(name):
            raise UserError(f"{path} and {first} are of different models: their {name} differs")


def _shared(means: dict[str, Tensor], parameters: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the averages, with one tensor for all names of a shared parameter."""
    known: dict[tuple[int, torch.Size], Tensor] = {}
    shared = {}
    for name, mean in means.items():
        place = (parameters[name].data_ptr(), mean.shape)
        other = known.setdefault(place, mean)
        shared[name] = other if torch.equal(other, mean) else mean
    return shared


def _mean(total: Tensor, count: int, manifold: StableLorentz | None) -> Tensor:
    if not total.is_floating_point():
        return total
    # the scale of a sum of points is free
    return total / count if manifold is None else lorentz.normalize(total, c=manifold.c)


def _points(path: Path, made: Model, parameters: Mapping[str, Tensor]) -> dict[str, StableLorentz]:
    """Return the manifold of each parameter that holds points, in a model with these options.

    Raises:
        UserError: the options do not fit the parameters.
    """
    architecture, options = made
    try:
        symbols = (_symbols(parameters, "encoder"), _symbols(parameters, "decoder"))
        model, _ = outline(architecture, options, symbols, parameters)
        # only embeddings can be points, and only with this storage
        if options.get("embedding_storage") != "manifold":
            return {}
        # a shared parameter has a name for each of its uses
        named = dict(model.named_parameters(remove_duplicate=False))
        points = {name: one for name, one in named.items() if isinstance(one, ManifoldParameter)}
    except UserError as error:
        raise UserError(f"checkpoint {path} cannot be averaged: {error}") from error
    return {name: point.manifold for name, point in points.items()}


def _symbols(parameters: Mapping[str, Tensor], side: str) -> Size:
    name = f"{side}.embed_tokens.weight"
    if name not in parameters or parameters[name].dim() != 2:
        raise UserError(f"it has no table {name}")
    return Size(parameters[name].size(0))
