"""Trainings that are gone on with from a state of which one part is another's."""

import copy
import functools
import random
from functools import partial
from pathlib import Path
from typing import Any

import torch

from hyptrans_startup.commands.messages import explain
from hyptrans_startup.errors import UserError
from tests.hostile import checkpoints, models
from tests.hostile.running import Hostile, ordinary

ODD: list[Any] = ["x", None, [], {}, -1, 2**63, float("nan"), float("inf"), True, [1, "x"]]
ODD += [torch.ones(0), torch.ones(3, 3), torch.tensor(1j), "1" * 10**6, (), {"a": {"b": 1}}]


@functools.cache
def trained(folder: Path) -> tuple[Any, Any]:
    """A training after one update, and a batch of it."""
    from fairseq import options, tasks
    from fairseq.dataclass.utils import convert_namespace_to_omegaconf
    from fairseq.trainer import Trainer

    import hyptrans.fairseq  # noqa: F401 - registers the architectures

    data = str(checkpoints.data_folder(folder))
    flags = ["--arch=euclidean_tiny", "-s=en", "-t=de", "--optimizer=adam", "--lr=0.001", "--cpu"]
    flags += ["--criterion=cross_entropy", "--max-tokens=99", "--lr-scheduler=inverse_sqrt"]
    args = options.parse_args_and_arch(
        options.get_training_parser(), [data, *flags, *models.NARROW]
    )
    cfg = convert_namespace_to_omegaconf(args)
    task = tasks.setup_task(cfg.task)
    trainer = Trainer(cfg, task, task.build_model(cfg.model), task.build_criterion(cfg.criterion))
    batch = checkpoints.crash({"extra_state": {}})["extra_state"]["samples"][0]
    trainer.train_step([batch])
    return trainer, batch


def go_on(path: Path, trainer: Any, batch: Any) -> None:
    """As ``fairseq-train`` does: it reads, makes an update, ends the epoch, and saves."""
    try:
        extra = trainer.load_checkpoint(str(path))
    except AssertionError as error:
        if (sentence := explain(error)) is None:
            raise
        raise UserError(sentence) from error
    trainer.train_step([batch])
    trainer.lr_step(1, 1.5)
    trainer.consolidate_optimizer()
    trainer.save_checkpoint(str(path.with_name("saved")), extra or {})
    path.with_name("saved").unlink()


def places(state: Any, inside: tuple = ()) -> list[tuple]:
    """Where the parts of a training lie, its parameters left out."""
    found = [inside] if inside else []
    if inside[:1] in (("cfg",), ("args",)) or inside[:2] == ("model",):
        return []
    pairs: Any = enumerate(state) if isinstance(state, list) else ()
    pairs = state.items() if isinstance(state, dict) else pairs
    for key, part in pairs:
        found += places(part, (*inside, key))
    return found


def states(draw: random.Random, folder: Path, count: int) -> list[Hostile]:
    """One part is of another kind, or gone."""
    trainer, batch = trained(folder)
    extra = {"train_iterator": {"epoch": 1, "iterations_in_epoch": 1, "version": 2}}
    extra |= {"best": 1.5, "val_loss": 1.5, "previous_training_time": 0.5}
    whole = folder / "whole.pt"
    trainer.consolidate_optimizer()
    trainer.save_checkpoint(str(whole), extra)
    state = torch.load(whole, weights_only=False)
    use = partial(go_on, trainer=trainer, batch=batch)
    tries = [ordinary(partial(use, whole))]
    for i in range(count):
        changed = copy.deepcopy({**state, "model": {}}) | {"model": dict(state["model"])}
        *way, last = draw.choice(places(changed))
        part = changed
        for key in way:
            part = part[key]
        if draw.random() < 0.1 and isinstance(part, dict):
            del part[last]
        else:
            part[last] = draw.choice(ODD)
        path = checkpoints.written(changed, folder / f"state{i}.pt")
        tries.append(Hostile(f"{(*way, last)}"[:80], partial(use, path)))
    return tries
