"""Name the first layer that is not finite when a loss or gradient stops a training."""

import contextlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Any

import fairseq.trainer
from fairseq.trainer import Trainer
from torch import Tensor, nn

from hyptrans.fairseq.around import Function, around

# fairseq's detector fails on modules that return dictionaries, as encoders do, and under torch 2
fairseq.trainer.NanDetector = contextlib.nullcontext


@around(Trainer, "train_step")
def name_the_first(step: Function, trainer: Any, samples: Any, *args: Any, **kwargs: Any) -> Any:
    """Train on batches.

    Raises:
        FloatingPointError: something is not finite; the message names the first.
    """
    try:
        return step(trainer, samples, *args, **kwargs)
    except FloatingPointError as error:
        raise FloatingPointError(
            f"update {trainer.get_num_updates() + 1}: {error}; first not finite: "
            f"{first_not_finite(trainer, samples)}; lower --lr or --clip-norm"
        ) from error


def first_not_finite(trainer: Any, samples: Sequence[Any]) -> str:
    """Run the same batches again and describe, for a message, what first is not finite.

    The order is: parameters, outputs of layers, gradients of these outputs from the last layer to
    the first, gradients of parameters.
    """
    model: nn.Module = trainer.get_model()
    for name, parameter in model.named_parameters():
        if not _finite(parameter):
            return f"parameter {name}"
    found: list[str] = []

    def look_back(name: str, gradient: Tensor) -> None:
        if not _finite(gradient):
            found.append(f"gradient of the output of {name}")

    def look(name: str, output: Any) -> None:
        for tensor in _tensors(output):
            # minus infinity may be intended: a masked score
            if not _finite(tensor.clamp_min(0)):
                found.append(f"output of {name}")
            elif tensor.requires_grad:
                tensor.register_hook(lambda grad: look_back(name, grad))

    trainer._set_seed()
    trainer.zero_grad()
    with ExitStack() as stack:
        for name, layer in model.named_modules():
            hook = layer.register_forward_hook(
                lambda layer, given, output, name=name: look(name or "the model", output)
            )
            stack.callback(hook.remove)
        for sample in samples:
            prepared, _ = trainer._prepare_sample(sample)
            trainer.task.train_step(
                prepared,
                trainer.model,
                trainer.criterion,
                trainer.optimizer,
                trainer.get_num_updates(),
            )
    gradients = {name: p.grad for name, p in model.named_parameters() if p.grad is not None}
    found += [f"gradient of parameter {name}" for name, g in gradients.items() if not _finite(g)]
    return found[0] if found else "the loss, or the norm of all gradients"


def _tensors(value: Any) -> Iterator[Tensor]:
    """Yield the floating-point tensors in a layer's output."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for part in value:
            yield from _tensors(part)
    elif isinstance(value, Tensor) and value.is_floating_point():
        yield value


def _finite(tensor: Tensor) -> bool:
    return bool(tensor.isfinite().all())
