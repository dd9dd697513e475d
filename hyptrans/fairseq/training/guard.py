"""Refuse, before training, combinations of flags that would move points off their manifold."""

from typing import Any

from fairseq.trainer import Trainer
from torch import nn

from hyptrans.fairseq.around import Function, around
from hyptrans.layers.manifold import manifold_parameters

AVERAGING_BACKENDS = ("slowmo", "slow_mo", "localsgd")


def check_manifold_flags(cfg: Any, model: nn.Module) -> None:
    """Check a whole training configuration against a model's manifold parameters.

    Raises:
        ValueError: a flag would drop the manifold or move points off it; the message names the
            flag and an alternative.
    """
    names = manifold_parameters(model)
    if not names:
        return
    common, distributed = cfg.common, cfg.distributed_training
    half = "copies parameters to plain ones without their manifold: use --amp or float32"
    mean = "averages points arithmetically, which leaves the manifold: leave it out"
    refused = {
        "--fp16": (common.fp16, half),
        "--bf16": (common.bf16, half),
        f"--optimizer {cfg.optimizer._name}": (
            cfg.optimizer._name != "riemannian_adam",
            "moves points off the manifold: use --optimizer riemannian_adam",
        ),
        "--store-ema": (cfg.ema.store_ema, mean),
        "--use-bmuf": (cfg.optimization.use_bmuf, mean),
        f"--ddp-backend {distributed.ddp_backend}": (
            distributed.ddp_backend in AVERAGING_BACKENDS,
            mean,
        ),
        "--ddp-backend fully_sharded": (
            distributed.ddp_backend == "fully_sharded",
            "flattens parameters into plain ones: use --ddp-backend pytorch_ddp",
        ),
        "--zero-sharding": (
            distributed.zero_sharding != "none",
            "rebuilds the optimizer without the manifold: leave it out",
        ),
    }
    problems = [f"{flag} {why}" for flag, (given, why) in refused.items() if given]
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
