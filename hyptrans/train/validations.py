"""Validations of a training: when they come, what is kept of them, and when to stop."""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import TrainerCallback

from hyptrans.geometry import lorentz
from hyptrans.support.files import whole_file
from hyptrans.train.settings import Settings


class Validations(TrainerCallback):
    """Validates at ends of epochs, keeps parameters, and stops what no longer improves.

    Every process counts for itself, so that all of them stop together; only the first one writes.

    ``folder`` gets a file for the best and each of the last validations.

    Attributes:
        bleu: BLEU by number of updates.
    """

    def __init__(self, folder: Path, settings: Settings) -> None:
        self.folder, self.settings = folder, settings
        self.bleu: dict[int, float] = {}

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.restore(state)

    def restore(self, state: Any) -> None:
        """Restore the validations of a save; the training repeats later ones."""
        scored = (line for line in state.log_history if "eval_bleu" in line)
        self.bleu = {line["step"]: line["eval_bleu"] for line in scored}

    def out_of_patience(self) -> bool:
        """Return whether too many validations have passed since the best one."""
        best = max(self.bleu, key=self.bleu.__getitem__, default=0)
        return 0 < self.settings.patience <= sum(updates > best for updates in self.bleu)

    def on_epoch_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        since = state.global_step - max(self.bleu, default=0)
        control.should_evaluate = since >= self.settings.validate_interval_updates

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        control.should_evaluate |= state.global_step == self.settings.max_update

    def on_evaluate(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        self.bleu[state.global_step] = given["metrics"]["eval_bleu"]
        if state.is_world_process_zero:
            self.save(state.global_step, given["model"])
        control.should_training_stop |= self.out_of_patience()

    def save(self, updates: int, model: torch.nn.Module) -> None:
        """Save parameters; remove those that are neither the best nor among the last."""
        buffer = io.BytesIO()
        torch.save({name: one.cpu() for name, one in model.state_dict().items()}, buffer)
        with whole_file(self._file(updates)) as file:
            file.write(buffer.getbuffer())
        for path in self.folder.glob("*.pt"):
            if int(path.stem) not in {self.best(), *self.last()}:
                path.unlink()

    def best(self) -> int:
        """Return the number of updates with the best BLEU, the first of equals."""
        return max(self._saved(), key=self.bleu.__getitem__)

    def last(self) -> list[int]:
        """Return the numbers of updates of the last validations."""
        return self._saved()[-self.settings.keep_last_epochs :]

    def mean(self, updates: Sequence[int], model: torch.nn.Module) -> dict[str, Tensor]:
        """Return means of parameters, and centroids of points (HyboNet eq. 4), by name."""
        files = [torch.load(self._file(n), weights_only=True) for n in updates]
        found = {}
        for name, parameter in model.state_dict(keep_vars=True).items():
            total = torch.stack([one[name].double() for one in files]).mean(0)
            manifold = getattr(parameter, "manifold", None)
            total = total if manifold is None else lorentz.normalize(total, c=manifold.c)
            found[name] = total.to(parameter.dtype)
        return found

    def _saved(self) -> list[int]:
        # a kill may have left a record without its file, which a later validation superseded
        return [updates for updates in self.bleu if self._file(updates).is_file()]

    def _file(self, updates: int) -> Path:
        return self.folder / f"{updates}.pt"
