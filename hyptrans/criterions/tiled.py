"""fairseq's label-smoothed cross entropy without all logits of a batch in memory."""

from typing import Any

from fairseq.criterions import register_criterion
from fairseq.criterions.label_smoothed_cross_entropy import (
    LabelSmoothedCrossEntropyCriterion,
    LabelSmoothedCrossEntropyCriterionConfig,
)
from torch import Tensor, nn

from hyptrans.kernels.loss import label_smoothed_cross_entropy


@register_criterion(
    "tiled_label_smoothed_cross_entropy", dataclass=LabelSmoothedCrossEntropyCriterionConfig
)
class TiledCrossEntropy(LabelSmoothedCrossEntropyCriterion):
    """The value and gradients of ``label_smoothed_cross_entropy``, from states and a table.

    Logits are products of the decoder's last states with a table of tokens; a few rows of them at a
    time are made and turned into losses and gradients. Padding costs nothing. It serves every model
    whose logits are such a product, fairseq's ``transformer`` included.

    Raises:
        ValueError: the model's logits are not one product, or ``--report-accuracy`` is given, which
            needs all logits.
    """

    def forward(self, model: Any, sample: dict[str, Any], reduce: bool = True) -> Any:
        if self.report_accuracy:
            raise ValueError(
                "--report-accuracy needs all logits: use --criterion label_smoothed_cross_entropy, "
                "or leave it out"
            )
        inputs = {**sample["net_input"], "features_only": True}
        return super().forward(model, {**sample, "net_input": inputs}, reduce)

    def compute_loss(
        self, model: Any, net_output: Any, sample: dict[str, Any], reduce: bool = True
    ) -> tuple[Tensor, Tensor]:
        """Both losses, summed: no caller of fairseq asks for those of single tokens."""
        features = net_output[0][:, self.ignore_prefix_size :]
        targets = sample["target"][:, self.ignore_prefix_size :]
        real = targets != self.padding_idx
        features, table = factors(model.decoder, features[real])
        return label_smoothed_cross_entropy(features, table, targets[real], smoothing=self.eps)


def factors(decoder: Any, features: Tensor) -> tuple[Tensor, Tensor]:
    """What a decoder's logits are a product of.

    Shapes: features ``[N, D]`` -> ``[N, K]``, ``[V, K]``.

    Raises:
        ValueError: they are not one product.
    """
    found = getattr(getattr(decoder, "logits", None), "factors", None)
    if found is not None:
        product: tuple[Tensor, Tensor] = found(features)
        return product
    projection = getattr(decoder, "output_projection", None)
    if isinstance(projection, nn.Linear) and projection.bias is None:
        return features, projection.weight
    raise ValueError(
        "--criterion tiled_label_smoothed_cross_entropy needs a model whose logits are one product "
        "of states and a table: use label_smoothed_cross_entropy"
    )
