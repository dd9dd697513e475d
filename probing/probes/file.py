"""Save and load probes in torch's format: parameters, settings, spaces and courses of training."""

from dataclasses import asdict
from pathlib import Path

import torch

from hyptrans.geometry.space import Space
from hyptrans.support.files import whole_file
from probing.probes.probe import make_probe
from probing.probes.training import TASKS, Course, Trained
from probing.settings import Settings


def save_probes(path: Path, trained: Trained) -> None:
    """Write both probes to a file, completely or not at all."""
    about = {
        "settings": asdict(trained.settings),
        "width": trained.distance.width,
        "spaces": [asdict(space) for space in trained.distance.spaces],
        "courses": {task: [asdict(c) for c in trained.courses[task]] for task in TASKS},
        "parameters": {task: getattr(trained, task).state_dict() for task in TASKS},
    }
    with whole_file(path) as file:
        torch.save(about, file)


def load_probes(path: Path) -> Trained:
    """Read what :func:`save_probes` wrote."""
    about = torch.load(path, map_location="cpu", weights_only=True)
    settings = Settings(**about["settings"])
    spaces = [Space(**space) for space in about["spaces"]]
    probes = {}
    for task in TASKS:
        probes[task] = make_probe(settings.probe, about["width"], settings.rank, spaces)
        probes[task].load_state_dict(about["parameters"][task])
    courses = {task: [Course(**course) for course in about["courses"][task]] for task in TASKS}
    return Trained(settings, **probes, courses=courses)
