"""Refuse, before training, combinations of flags that would move points off their manifold."""

from typing import Any

from fairseq.trainer import Trainer
from torch import nn

from hyptrans.fairseq.around import Function, around
from hyptrans.layers.manifold import manifold_parameters


def check_manifold_flags(cfg: Any, model: nn.Module) -> None:
    """Check a whole training configuration against a model's manifold parameters.

    Raises:
        ValueError: a flag would drop the manifold or move points off it; the message names the
            flag and an alternative.
    """
    names = manifold_parameters(model)
    if not names:
        return
    optimizer, backend = cfg.optimizer._name, cfg.distributed_training.ddp_backend
    averages = backend in ("slowmo", "slow_mo", "localsgd")
    half = "copies parameters to plain ones without their manifold: use --amp or float32"
    mean = "averages points arithmetically, which leaves the manifold: leave it out"
    off = "moves points off the manifold: use --optimizer riemannian_adam"
    flat = "flattens parameters into plain ones: use --ddp-backend pytorch_ddp"
    anew = "rebuilds the optimizer without the manifold: leave it out"
    refused = [
        (cfg.common.fp16, "--fp16", half),
        (cfg.common.bf16, "--bf16", half),
        (optimizer != "riemannian_adam", f"--optimizer {optimizer}", off),
        (cfg.ema.store_ema, "--store-ema", mean),
        (cfg.optimization.use_bmuf, "--use-bmuf", mean),
        (averages, f"--ddp-backend {backend}", mean),
        (backend == "fully_sharded", f"--ddp-backend {backend}", flat),
        (cfg.distributed_training.zero_sharding != "none", "--zero-sharding", anew),
    ]
    problems = [f"{flag} {why}" for given, flag, why in refused if given]
    if problems:
        raise ValueError(
            f"with {len(names)} manifold parameters ({names[0]}, …): "
            + "; ".join(problems)
            + " (or train with --embedding-storage space)"
        )


@around(Trainer, "_build_optimizer")
def _checked(build: Function, trainer: Any) -> None:
    check_manifold_flags(trainer.cfg, trainer._model)
    build(trainer)
