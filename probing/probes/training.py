"""Train probes of all layers and both tasks in one pass over the data; save and load them.

Layers share only batches and matrix products: each has its own parameters, learning rate, best
weights and end of training, as if it were trained alone.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.optim import Adam
from torch.optim.lr_scheduler import ReduceLROnPlateau

from hyptrans.geometry.space import Space
from hyptrans.support.errors import UserError
from hyptrans.support.files import whole_file
from hyptrans.support.progress import bar
from probing.probes.corpus import Batch, Corpus, check_learnable
from probing.probes.probe import PROBES, Probe
from probing.settings import LEAST_IMPROVEMENT, LR_FACTOR, LR_PATIENCE, Settings
from probing.states.encoder import move

TASKS = ("distance", "depth")


@dataclass
class Course:
    """The course of training of one layer for one task."""

    losses: list[float] = field(default_factory=list)
    """Losses on the development set, one per evaluation."""
    best_step: int = 0
    best_loss: float = float("inf")
    steps: int = 0


@dataclass
class Trained:
    """Probes with the weights that were best on the development set."""

    settings: Settings
    distance: Probe
    depth: Probe
    courses: dict[str, list[Course]]
    """By task, one per layer."""

    def save(self, path: Path) -> None:
        """Write both probes to a file, completely or not at all."""
        about = {
            "settings": asdict(self.settings),
            "width": self.distance.width,
            "spaces": [asdict(space) for space in self.distance.spaces],
            "courses": {task: [asdict(one) for one in self.courses[task]] for task in TASKS},
            "parameters": {task: getattr(self, task).state_dict() for task in TASKS},
        }
        with whole_file(path) as file:
            torch.save(about, file)


def load_probes(path: Path) -> Trained:
    """Read what :meth:`Trained.save` wrote."""
    about = torch.load(path, map_location="cpu", weights_only=True)
    settings = Settings(**about["settings"])
    spaces = [Space(**space) for space in about["spaces"]]
    probes = {}
    for task in TASKS:
        probes[task] = PROBES[settings.probe](about["width"], settings.rank, spaces)
        probes[task].load_state_dict(about["parameters"][task])
    courses = {task: [Course(**course) for course in about["courses"][task]] for task in TASKS}
    return Trained(settings, **probes, courses=courses)


def distance_losses(predicted: Tensor, batch: Batch) -> Tensor:
    """Return the mean over sentences of all pairs' absolute errors over the squared length.

    Shapes: predicted ``[layers, B, N, N]`` -> ``[layers]``. Source: Hewitt and Manning 2019.
    """
    words = batch.words.to(predicted.dtype)
    # a pair with padding weighs 0
    weights = words / batch.lengths.unsqueeze(1)
    errors = (predicted - batch.distances).abs()
    per_word = torch.matmul(errors, weights.unsqueeze(-1)).squeeze(-1)
    return (per_word * weights).sum(-1).mean(-1)


def depth_losses(predicted: Tensor, batch: Batch) -> Tensor:
    """Return the mean over sentences of all words' absolute errors over the length.

    Shapes: predicted ``[layers, B, N]`` -> ``[layers]``. Source: Hewitt and Manning 2019.
    """
    weights = batch.words.to(predicted.dtype) / batch.lengths.unsqueeze(1)
    return ((predicted - batch.depths).abs() * weights).sum(-1).mean(-1)


class _Task:
    """A probe of all layers with one optimizer per layer."""

    def __init__(self, name: str, probe: Probe, settings: Settings) -> None:
        self.name, self.settings, self.probe = name, settings, probe
        self.active = list(range(len(probe.spaces)))
        self.courses = [Course() for _ in self.active]
        own = [self.probe.parameters_of(layer) for layer in self.active]
        # fused: one step for a layer's few small tensors
        adam: Any = {"lr": settings.lr, "weight_decay": settings.weight_decay, "fused": True}
        self.optimizers = [Adam(parameters, **adam) for parameters in own]
        rule: Any = {"factor": LR_FACTOR, "patience": LR_PATIENCE, "threshold": LEAST_IMPROVEMENT}
        self.schedules = [ReduceLROnPlateau(one, **rule) for one in self.optimizers]
        self.waited = [0 for _ in self.active]
        self.best = [[p.detach().clone() for p in parameters] for parameters in own]

    def losses(self, batch: Batch) -> Tensor:
        """Return the losses of the layers that still learn."""
        all_active = len(self.active) == len(self.courses)
        states = batch.states if all_active else batch.states[self.active]
        if self.name == "distance":
            return distance_losses(self.probe.distances(states, self.active), batch)
        return depth_losses(self.probe.depths(states, self.active), batch)

    def learn(self, batch: Batch) -> None:
        """Take one training step for every layer that still learns."""
        if not self.active:
            return
        # each layer's parameters get the gradient of their own loss only
        self.losses(batch).sum().backward()
        for layer in self.active:
            self.optimizers[layer].step()
            self.optimizers[layer].zero_grad()

    def look(self, losses: Sequence[float], step: int) -> None:
        """Record the active layers' losses on the development set; stop layers out of patience."""
        still = []
        for layer, loss in zip(self.active, losses, strict=True):
            course = self.courses[layer]
            course.losses.append(loss)
            course.steps = step
            if loss < course.best_loss:
                course.best_loss, course.best_step, self.waited[layer] = loss, step, 0
                own = self.probe.parameters_of(layer)
                self.best[layer] = [p.detach().clone() for p in own]
            else:
                self.waited[layer] += 1
            self.schedules[layer].step(loss)
            if self.waited[layer] < self.settings.patience:
                still.append(layer)
        self.active = still

    def finish(self) -> Probe:
        """Return the probe with its best weights, on the CPU.

        Raises:
            UserError: a layer never had a finite loss.
        """
        with torch.no_grad():
            for layer, course in enumerate(self.courses):
                if course.best_step == 0:
                    raise UserError(
                        f"the {self.name} probe of layer {layer} never had a finite loss; "
                        "train it with a lower --lr"
                    )
                own = self.probe.parameters_of(layer)
                for parameter, best in zip(own, self.best[layer], strict=True):
                    parameter.copy_(best)
        return self.probe.cpu()


def train(
    train_set: Corpus, dev_set: Corpus, settings: Settings, *, name: str = "", device: str = "cpu"
) -> Trained:
    """Train a distance and a depth probe for every layer.

    Raises:
        UserError: the training set has only one-word sentences, a layer's loss is never finite, or
            torch cannot use the device.
    """
    states = train_set.states
    check_learnable(train_set.lengths, train_set.name)
    rng = torch.Generator().manual_seed(settings.seed)
    # draw on the CPU, so that a seed gives the same initial weights on every device
    made_of = states.width, settings.rank, states.spaces, rng
    probes = [PROBES[settings.probe](*made_of) for _ in TASKS]
    for probe in probes:
        move(probe, device)
    tasks = [_Task(*named, settings) for named in zip(TASKS, probes, strict=True)]
    batches = train_set.shuffled(settings.batch_size, rng)
    every = settings.evaluate_every
    for step in bar(range(1, settings.steps + 1), f"probes {name}".strip(), unit=" steps"):
        batch = train_set.batch(next(batches)).to(device)
        for task in tasks:
            task.learn(batch)
        if step % every == 0 or step == settings.steps:
            _look(tasks, dev_set, settings.batch_size, step, device)
        if not any(task.active for task in tasks):
            break
    distance, depth = (task.finish() for task in tasks)
    courses = {task.name: task.courses for task in tasks}
    return Trained(settings, distance, depth, courses)


@torch.no_grad()
def _look(tasks: Sequence[_Task], dev_set: Corpus, batch_size: int, step: int, device: str) -> None:
    sums = [torch.zeros(len(task.active), dtype=torch.float64) for task in tasks]
    for indices in dev_set.in_order(batch_size):
        batch = dev_set.batch(indices).to(device)
        for task, total in zip(tasks, sums, strict=True):
            if task.active:
                total += task.losses(batch).cpu().double() * len(indices)
    for task, total in zip(tasks, sums, strict=True):
        task.look((total / len(dev_set)).tolist(), step)
