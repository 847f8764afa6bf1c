"""``distilled_label_smoothed_cross_entropy``, ``distilled_cross_entropy`` and ``distilled_masked_lm``: fairseq's losses
with a teacher.

Annotations are not postponed in this module: fairseq reads the options from the field types.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fairseq.criterions import CRITERION_REGISTRY, register_criterion
from fairseq.criterions.cross_entropy import CrossEntropyCriterion, CrossEntropyCriterionConfig
from fairseq.criterions.label_smoothed_cross_entropy import (
    LabelSmoothedCrossEntropyCriterion,
    LabelSmoothedCrossEntropyCriterionConfig,
)
from fairseq.criterions.masked_lm import MaskedLmConfig, MaskedLmLoss
from torch import Tensor

from fairseq_ext.compat import one_line_errors
from fairseq_ext.criterion import FusedLabelSmoothedCrossEntropy
from fairseq_ext.distillation.criterion import Distilled
from fairseq_ext.distillation.options import DistillationConfig
from nas_core.errors import ConfigError


@dataclass
class DistilledLabelSmoothedConfig(DistillationConfig, LabelSmoothedCrossEntropyCriterionConfig):  # type: ignore[misc]
    """fairseq's options of label-smoothed cross entropy, and those of a teacher."""


@dataclass
class DistilledCrossEntropyConfig(DistillationConfig, CrossEntropyCriterionConfig):  # type: ignore[misc]
    """fairseq's options of cross entropy, and those of a teacher."""


@dataclass
class DistilledMaskedLmConfig(DistillationConfig, MaskedLmConfig):  # type: ignore[misc]
    """fairseq's options of the loss of masked words, and those of a teacher."""


class DistilledLabelSmoothedCrossEntropy(Distilled, LabelSmoothedCrossEntropyCriterion):  # type: ignore[misc]
    """``label_smoothed_cross_entropy`` with a teacher, for translation."""

    def __init__(self, task: Any, cfg: DistilledLabelSmoothedConfig) -> None:
        super().__init__(task, cfg.sentence_avg, cfg.label_smoothing, cfg.ignore_prefix_size, cfg.report_accuracy)
        self.smoothing = cfg.label_smoothing
        with one_line_errors():
            if cfg.ignore_prefix_size:
                raise ConfigError("--ignore-prefix-size is not read by a criterion with a teacher; drop it")
        self.set_up(cfg, task)

    def plain(self, model: Any, sample: dict[str, Any], reduce: bool) -> tuple[Any, Any, dict[str, Any]]:
        if not hasattr(model, "active_subnet"):
            return super().plain(model, sample, reduce)
        result: tuple[Any, Any, dict[str, Any]] = FusedLabelSmoothedCrossEntropy.forward(self, model, sample, reduce)
        return result


class DistilledCrossEntropy(Distilled, CrossEntropyCriterion):  # type: ignore[misc]
    """``cross_entropy`` with a teacher, for language models."""

    def __init__(self, task: Any, cfg: DistilledCrossEntropyConfig) -> None:
        super().__init__(task, cfg.sentence_avg)
        self.set_up(cfg, task)


class DistilledMaskedLm(Distilled, MaskedLmLoss):  # type: ignore[misc]
    """``masked_lm`` with a teacher, which reads the same masked sentences."""

    cached = False

    def __init__(self, task: Any, cfg: DistilledMaskedLmConfig) -> None:
        super().__init__(cfg, task)
        self.set_up(cfg, task)

    def predicted(self, sample: dict[str, Any]) -> tuple[Tensor, Any, Callable[[Any], tuple[Tensor, Tensor | None]]]:
        target = sample["target"]
        masked = target.ne(self.padding_idx)

        def run(net: Any) -> tuple[Tensor, None]:
            return net(**sample["net_input"], masked_tokens=masked)[0].flatten(0, -2), None

        return target[masked], masked.int().sum(), run

    def masks(self, sample: dict[str, Any]) -> dict[str, Tensor]:
        """Every token counts, masked or not."""
        return {"": sample["net_input"]["src_tokens"].ne(self.padding_idx)}


for _name, _criterion, _config in (
    ("distilled_label_smoothed_cross_entropy", DistilledLabelSmoothedCrossEntropy, DistilledLabelSmoothedConfig),
    ("distilled_cross_entropy", DistilledCrossEntropy, DistilledCrossEntropyConfig),
    ("distilled_masked_lm", DistilledMaskedLm, DistilledMaskedLmConfig),
):
    if _name not in CRITERION_REGISTRY:
        register_criterion(_name, dataclass=_config)(_criterion)
