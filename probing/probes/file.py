"""Probes in a file: parameters in safetensors, all else as JSON in its metadata."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save

from hyptrans.geometry.space import Space
from hyptrans.support.errors import UserError
from hyptrans.support.files import whole_file
from hyptrans.support.stored import as_declared, build, read_json
from probing.probes.probe import Probe, make_probe
from probing.probes.training import TASKS, Course, Trained
from probing.settings import Settings
from probing.states.file import States, reading

FORMAT = "hyptrans probes 2"


def save_probes(path: Path, trained: Trained) -> None:
    """Write both probes, whole or not at all."""
    probes = {"distance": trained.distance, "depth": trained.depth}
    parameters = {
        f"{task}.{name}": tensor.contiguous()
        for task, probe in probes.items()
        for name, tensor in probe.state_dict().items()
    }
    about = {
        "settings": asdict(trained.settings),
        "origin": trained.origin,
        "width": trained.distance.width,
        "spaces": [asdict(space) for space in trained.distance.spaces],
        "courses": {task: [asdict(c) for c in trained.courses[task]] for task in TASKS},
    }
    metadata = {"format": FORMAT, "about": json.dumps(about)}
    with whole_file(path) as file:
        file.write(save(parameters, metadata))


def load_probes(path: Path) -> Trained:
    """Read what :func:`save_probes` wrote.

    Raises:
        UserError: the file is missing, damaged or something else.
    """
    with reading(path, "probes", "train", FORMAT, "pt") as (file, metadata):
        parameters = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        return _trained(read_json(metadata["about"]), parameters)


def _trained(about: dict[str, Any], parameters: dict[str, torch.Tensor]) -> Trained:
    settings = build(Settings, about["settings"])
    origin = as_declared("origin", about["origin"], str)
    layers = len(about["spaces"])
    width = as_declared("width", about["width"], int)
    held = sum(tensor.numel() for tensor in parameters.values())
    # a map takes a coordinate less of each where points have a time, and a second one ranks only
    across = width if settings.probe == "euclidean" else max(width, settings.rank)
    if not 0 < (across - 1) * (settings.rank - 1) * layers <= held:
        raise ValueError("its sizes are not those of its parameters")
    if any(len(about["courses"][task]) != layers for task in TASKS):
        raise ValueError("it has not one course of training for each layer")
    spaces = [build(Space, space) for space in about["spaces"]]
    if any(tensor.dtype != torch.float32 for tensor in parameters.values()):
        raise ValueError("its parameters are not of float32")
    probes = {}
    for task in TASKS:
        probe = make_probe(settings.probe, width, settings.rank, spaces)
        prefix = f"{task}."
        own = {k.removeprefix(prefix): v for k, v in parameters.items() if k.startswith(prefix)}
        probe.load_state_dict(own)
        probes[task] = probe
    courses = {task: [build(Course, course) for course in about["courses"][task]] for task in TASKS}
    return Trained(settings, origin, probes["distance"], probes["depth"], courses)


def check_fits(trained: Trained, states: States, probes: Path, name: str) -> None:
    """Refuse states of another encoder than the probes were trained for.

    Raises:
        UserError: names both files.
    """
    probe: Probe = trained.distance
    if (probe.width, probe.spaces) != (states.width, list(states.spaces)):
        raise UserError(
            f"{probes} was trained on states of another encoder than {name}: "
            f"{len(probe.spaces)} layers of {probe.width} numbers in {_space(probe.spaces)}, here "
            f"{states.layers} of {states.width} in {_space(states.spaces)}"
        )
    if trained.origin != states.origin:
        raise UserError(
            f"{probes} was trained on states of another encoder than {name}: one of the same sizes "
            "with other parameters"
        )


def _space(spaces: list[Space]) -> str:
    kinds = {f"{space.kind} space of c = {space.c:g}" for space in spaces}
    return next(iter(kinds)) if len(kinds) == 1 else f"{spaces[0].kind} spaces"
