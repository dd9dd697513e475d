"""fairseq's label-smoothed cross entropy, without holding all logits of a batch in memory."""

from collections.abc import Callable
from typing import Any

from fairseq.criterions import register_criterion
from fairseq.criterions.label_smoothed_cross_entropy import (
    LabelSmoothedCrossEntropyCriterion,
    LabelSmoothedCrossEntropyCriterionConfig,
)
from torch import Tensor, nn

from hyptrans.kernels.products import label_smoothed_cross_entropy


@register_criterion(
    "tiled_label_smoothed_cross_entropy", dataclass=LabelSmoothedCrossEntropyCriterionConfig
)
class TiledCrossEntropy(LabelSmoothedCrossEntropyCriterion):
    """Computes value and gradients of ``label_smoothed_cross_entropy`` from states and a table.

    Logits are products of the decoder's last states with a table of tokens. The criterion computes
    a few rows of them at a time, in the precision of these factors, and turns them into losses and
    gradients in float32 at least. Padding costs nothing. Every model works whose logits are such a
    product, fairseq's ``transformer`` included. ``--find-unused-parameters`` would take the table
    for unused, as it is read outside the model's forward pass.

    Raises:
        ValueError: the model's logits are not such a product, or ``--report-accuracy`` is given,
            which needs all logits.
    """

    @classmethod
    def build_criterion(cls, cfg: Any, task: Any) -> Any:
        if cfg.report_accuracy:
            raise ValueError(
                "--report-accuracy needs all logits: use --criterion label_smoothed_cross_entropy, "
                "or leave it out"
            )
        return super().build_criterion(cfg, task)

    def forward(self, model: Any, sample: dict[str, Any], reduce: bool = True) -> Any:
        factors_of(getattr(model, "decoder", None))
        inputs = {**sample["net_input"], "features_only": True}
        return super().forward(model, {**sample, "net_input": inputs}, reduce)

    def compute_loss(
        self, model: Any, net_output: Any, sample: dict[str, Any], reduce: bool = True
    ) -> tuple[Tensor, Tensor]:
        """Return both losses, summed; no caller in fairseq needs them per token."""
        features = net_output[0][:, self.ignore_prefix_size :]
        targets = sample["target"][:, self.ignore_prefix_size :]
        targets = targets.flatten()
        # indices, because the host would wait for a mask twice
        real = targets.ne(self.padding_idx).nonzero().squeeze(-1)
        features, table = factors_of(model.decoder)(features.flatten(0, 1)[real])
        return label_smoothed_cross_entropy(features, table, targets[real], smoothing=self.eps)


def factors_of(decoder: Any) -> Callable[[Tensor], tuple[Tensor, Tensor]]:
    """Return the function from a decoder's last states to the two factors of its logits.

    Shapes of this function: states ``[N, D]`` -> ``[N, K]``, ``[V, K]``.

    Raises:
        ValueError: the logits are not one product.
    """
    found: Callable[[Tensor], tuple[Tensor, Tensor]] | None
    found = getattr(getattr(decoder, "logits", None), "factors", None)
    if found is not None:
        return found
    projection = getattr(decoder, "output_projection", None)
    if isinstance(projection, nn.Linear) and projection.bias is None:
        weight = projection.weight
        return lambda states: (states, weight)
    raise ValueError(
        "--criterion tiled_label_smoothed_cross_entropy needs a model whose logits are one product "
        "of states and a table: use label_smoothed_cross_entropy"
    )
