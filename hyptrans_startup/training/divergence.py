"""What is no longer finite: one sentence, and of a training what it takes to see why."""

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Any

from hyptrans_startup import plugin
from hyptrans_startup.wrapping import told

CRASH = "crash.pt"
"""Where fairseq keeps the weights before the update that failed; here with its batches, too."""
ALL_FINITE = "the loss, or the sum of all gradients"
"""What is not finite where no parameter, no layer's output and no gradient is it."""
LARGEST_SQUARED = 1.8e19
"""The square of a larger number is infinite in float32, and so is a norm of gradients."""
SAMPLES = "samples"
"""Their place in what is kept beside the weights."""


def nan_detector_fails(*_: Any, **__: Any) -> Any:
    """Torch 2: ``StopIteration`` from ``register_backward_hook``, and nothing of the gradients.

    fairseq's NanDetector cannot be hung on modules that return dictionaries, as encoders do.
    """
    raise NotFiniteError("what was not finite is looked for where the batches are known")


class NotFiniteError(ArithmeticError):
    """Gradients are not finite; raised in place of fairseq's search for the reason.

    Attributes:
        first: what is not finite first, as :func:`first_not_finite` says it.
    """

    first = ""


@told(NotFiniteError)
def gradients_not_finite(
    error: NotFiniteError, trainer: Any, samples: Sequence[Any], *_: Any, **__: Any
) -> str:
    """A traceback for gradients that are not finite, and nothing about where they began."""
    error.first = first_not_finite(trainer, samples)
    cause = str(error.__context__).partition("\n")[0]
    if error.first == ALL_FINITE and cause and cause != "gradients are Nan/Inf":
        return f"update {trainer.get_num_updates() + 1}: {cause}"
    return explained(trainer, samples, error.first)


@told(AssertionError)
def search_without_scores(error: Exception, *_: Any, **kwargs: Any) -> str | None:
    """``AssertionError: 42 < 42`` where weights are not finite, or so large that scores are not."""
    if not re.fullmatch(r"(\d+) < \1", str(error)):
        return None
    if kwargs.get("constraints") is not None:
        return (
            "the constraints of a sentence do not fit into its longest translation: "
            "raise --max-len-b"
        )
    return (
        "no translation has a score that is a number: the weights are damaged, or the "
        "training went on after they were no longer finite"
    )


def explained(trainer: Any, samples: Sequence[Any], first: str) -> str:
    """Return the sentence that names the update and the layer, with weights and batches kept."""
    update = trainer.get_num_updates() + 1
    crash = os.path.join(trainer.cfg.checkpoint.save_dir, CRASH)
    trainer.save_checkpoint(crash, {SAMPLES: list(samples)})
    clip = trainer.cfg.optimization.clip_norm
    also = "set --clip-norm" if clip == 0 else f"--clip-norm, which is {clip:g}"
    # the first process alone writes
    of_several = ", of the first process," if trainer.data_parallel_world_size > 1 else ""
    return (
        f"gradients are NaN at update {update}: lower --lr or {also} (first not finite: {first}); "
        f"{plugin.PACKAGE} replay {crash} runs the very batch{of_several} again, with the same "
        "weights and random numbers"
    )


def first_not_finite(trainer: Any, samples: Sequence[Any]) -> str:
    """Return what is not finite first where the batches are run again, in the words of a message.

    Looked at are parameters, what comes out of each layer, and then, from the last layer to the
    first, the gradients of that and of parameters.
    """
    model = trainer.get_model()
    for name, parameter in model.named_parameters():
        if not _finite(parameter):
            return f"parameter {name}"
    found: list[str] = []

    def watch(value: Any, name: str) -> None:
        for tensor in _tensors(value):
            # minus infinity may be meant: a score that is masked
            if not _finite(tensor.clamp_min(0)):
                found.append(f"output of {name}")
            elif tensor.requires_grad:
                tensor.register_hook(lambda grad: _note(grad, name))

    def _note(grad: Any, name: str) -> None:
        if not _finite(grad):
            found.append(f"gradient of the output of {name}")

    trainer._set_seed()
    trainer.zero_grad()
    with ExitStack() as stack:
        for name, layer in model.named_modules():
            if name:
                hook = layer.register_forward_hook(
                    lambda layer, given, out, name=name: watch(out, name)
                )
                stack.callback(hook.remove)
        for sample in samples:
            prepared, dummy = trainer._prepare_sample(sample)
            trainer.task.train_step(
                prepared,
                trainer.model,
                trainer.criterion,
                trainer.optimizer,
                trainer.get_num_updates(),
                ignore_grad=dummy,
            )
            if found:
                return found[0]
    largest, where = 0.0, ""
    for name, parameter in model.named_parameters():
        if parameter.grad is None:
            continue
        if not _finite(parameter.grad):
            return f"gradient of parameter {name}"
        largest, where = max((largest, where), (float(parameter.grad.abs().max()), name))
    if largest > LARGEST_SQUARED:
        return f"the norm of all gradients, as that of parameter {where} reaches {largest:.0e}"
    return ALL_FINITE


def _tensors(value: Any) -> Iterator[Any]:
    """The tensors with gradients in what a layer returns."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for part in value:
            yield from _tensors(part)
    elif hasattr(value, "is_floating_point") and value.is_floating_point():
        yield value


def _finite(tensor: Any) -> bool:
    return bool(tensor.isfinite().all())
