"""``--criterion fused_label_smoothed_cross_entropy``: fairseq's loss, computed together with the output projection."""

from typing import Any

from fairseq.criterions import CRITERION_REGISTRY, register_criterion
from fairseq.criterions.label_smoothed_cross_entropy import (
    LabelSmoothedCrossEntropyCriterion,
    LabelSmoothedCrossEntropyCriterionConfig,
)

from fairseq_ext.compat import one_line_errors, options_in
from nas_core.errors import ConfigError
from nas_core.layers.smoothed_loss import projected_smoothed_loss

NAME = "fused_label_smoothed_cross_entropy"


class FusedLabelSmoothedCrossEntropy(LabelSmoothedCrossEntropyCriterion):  # type: ignore[misc]
    """``label_smoothed_cross_entropy`` that never stores the logits of a whole batch; faster for large vocabularies."""

    def forward(self, model, sample, reduce=True):  # type: ignore[no-untyped-def]
        if not reduce or self.report_accuracy or self.ignore_prefix_size:
            return super().forward(model, sample, reduce)
        if not hasattr(model, "active_subnet"):
            with one_line_errors():
                raise ConfigError(
                    f"--criterion {NAME} supports only models of nas-ext, such as --arch hat_transformer; give"
                    " --criterion label_smoothed_cross_entropy"
                )
        features, extra = model(**sample["net_input"], features_only=True)
        target = sample["target"]
        loss, nll = projected_smoothed_loss(
            features.flatten(0, 1), extra["output"], target.view(-1), self.eps, self.padding_idx
        )
        sample_size = target.size(0) if self.sentence_avg else sample["ntokens"]
        logging_output = {
            "loss": loss.data,
            "nll_loss": nll.data,
            "ntokens": sample["ntokens"],
            "nsentences": target.size(0),
            "sample_size": sample_size,
        }
        return loss, sample_size, logging_output


def label_smoothing(state: dict[str, Any]) -> float:
    return float(options_in(state["cfg"].get("criterion")).get("label_smoothing") or 0.0)


if NAME not in CRITERION_REGISTRY:
    register_criterion(NAME, dataclass=LabelSmoothedCrossEntropyCriterionConfig)(FusedLabelSmoothedCrossEntropy)
