"""Average the checkpoints of one training."""

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from omegaconf import OmegaConf
from torch import Tensor

from hyptrans.fairseq.checkpoint import (
    DICTIONARIES,
    architecture_of,
    parameters_of,
    read_state,
    updates_of,
)
from hyptrans.geometry import lorentz
from hyptrans.inference.architecture import outline
from hyptrans.inference.contents import AVERAGED
from hyptrans.inference.dictionary import Size
from hyptrans.models.euclidean import UNSET
from hyptrans.support.errors import UserError
from hyptrans.support.files import whole_file
from hyptrans.support.progress import bar


def newest(folder: Path, count: int) -> list[Path]:
    """Return the newest checkpoints of a ``--save-dir`` of ``fairseq-train``, the oldest first.

    Raises:
        UserError: the folder has too few checkpoints.
    """
    found = {}
    for path in sorted(folder.glob("checkpoint*.pt")):
        state = read_state(path)
        # a checkpoint and its copies, such as checkpoint_last.pt, count once
        if AVERAGED not in (state.get("extra_state") or {}):
            found[updates_of(state) or 0] = path
    if len(found) < count:
        raise UserError(
            f"{folder} has {len(found)} checkpoints to choose {count} from: keep more of them with "
            "--save-interval-updates and --keep-interval-updates of fairseq-train"
        )
    return [found[updates] for updates in sorted(found)[-count:]]


def average(paths: Sequence[Path]) -> dict[str, Any]:
    """Return a checkpoint with the average parameters of several, and all else of the last.

    Ordinary parameters become their mean, points of a manifold their Lorentz centroid (HyboNet
    eq. 4), which is again a point; both in float64. The result has no state of the optimizer, and
    notes after how many updates each checkpoint was written.

    Raises:
        UserError: the checkpoints are of different models, or of one that cannot be loaded.
    """
    sums: dict[str, Tensor] = {}
    updates: list[int] = []
    kinds: list[Any] = []
    for path in bar(paths, "average", len(paths), " checkpoints"):
        state = read_state(path)
        parameters = parameters_of(path, state)
        kinds.append(_kind(path, state, parameters))
        if kinds[-1] != kinds[0]:
            raise UserError(f"{path} and {paths[0]} are of different models or dictionaries")
        for name, one in parameters.items():
            sums[name] = sums[name] + one.double() if name in sums else one.double()
        updates.append(updates_of(state) or 0)
    curvatures = _curvatures(paths[-1], state, parameters)
    shared: dict[tuple[int, torch.Size], Tensor] = {}
    for name, one in parameters.items():
        if one.is_floating_point():
            # the scale of a sum of points is free
            c, total = curvatures.get(name), sums[name]
            mean = total / len(paths) if c is None else lorentz.normalize(total, c=c)
            if not mean.isfinite().all() and not name.endswith(UNSET):
                raise UserError(f"{name} is not finite in all of these checkpoints: take others")
            # a shared table has several names, and stays one tensor
            parameters[name] = shared.setdefault((one.data_ptr(), one.shape), mean.to(one.dtype))
    state["model"] = parameters
    state["last_optimizer_state"] = None
    state["extra_state"] = {**(state.get("extra_state") or {}), AVERAGED: updates}
    # plain values, as fairseq stores them; references stay unresolved
    state["cfg"] = OmegaConf.to_container(state["cfg"], resolve=False, enum_to_str=True)
    return state


def write(state: Mapping[str, Any], out: Path) -> None:
    """Write a checkpoint, whole or not at all."""
    # torch would report a full disk without the file's name
    buffer = io.BytesIO()
    torch.save(dict(state), buffer)
    with whole_file(out) as file:
        file.write(buffer.getbuffer())


def _kind(path: Path, state: Mapping[str, Any], parameters: Mapping[str, Tensor]) -> Any:
    """Return all that checkpoints of one training have in common; dropout may change."""
    architecture, options = architecture_of(path, state)
    formulas = {name: value for name, value in options.items() if "drop" not in name}
    shapes = {name: one.shape for name, one in parameters.items()}
    return architecture, formulas, shapes, state.get(DICTIONARIES)


def _curvatures(
    path: Path, state: Mapping[str, Any], parameters: Mapping[str, Tensor]
) -> dict[str, Any]:
    """Return the curvature of each parameter that holds points."""
    architecture, options = architecture_of(path, state)
    tables = [parameters.get(f"{side}.embed_tokens.weight") for side in ("encoder", "decoder")]
    source, target = (Size(0 if table is None else len(table)) for table in tables)
    try:
        model, _ = outline(architecture, options, (source, target), parameters)
    except UserError as error:
        raise UserError(f"checkpoint {path} cannot be averaged: {error}") from error
    # a shared parameter has a name for each of its uses
    named = model.named_parameters(remove_duplicate=False)
    return {name: one.manifold.c for name, one in named if hasattr(one, "manifold")}
