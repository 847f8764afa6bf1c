"""Criteria for distillation: ``distilled_label_smoothed_cross_entropy``, ``distilled_cross_entropy`` and
``distilled_masked_lm``.

Shapes: B batch, T length, N = B * T target tokens, C channels, V vocabulary.
"""
# Annotations are not postponed: fairseq reads option types.

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Optional

from fairseq import metrics
from fairseq.criterions import CRITERION_REGISTRY, register_criterion
from fairseq.criterions.cross_entropy import CrossEntropyCriterion, CrossEntropyCriterionConfig
from fairseq.criterions.label_smoothed_cross_entropy import (
    LabelSmoothedCrossEntropyCriterion,
    LabelSmoothedCrossEntropyCriterionConfig,
)
from fairseq.criterions.masked_lm import MaskedLmConfig, MaskedLmLoss
from fairseq.dataclass import FairseqDataclass
from torch import Tensor, nn

from fairseq_ext.compat import one_line_errors
from fairseq_ext.criterion import FusedLabelSmoothedCrossEntropy
from fairseq_ext.data import options_of
from fairseq_ext.distillation.teacher import FileTeacher, teacher_output
from fairseq_ext.patches import keep_all_sentences
from nas_core.errors import ConfigError
from nas_core.layers.smoothed_loss import projected_smoothed_loss
from nas_core.options import check_ranges
from nas_core.supernet.teacher.losses import DISTILLATION_RANGES
from nas_core.supernet.teacher.projected import DistilledSums, distilled_loss, projected_distilled_loss, smoothed_loss

LARGEST = "largest"
"""Value of ``--teacher`` that makes the largest subnet the teacher."""
Outputs = tuple[Tensor, Tensor | None]
"""Features (N, C) and output embeddings (V, C), or logits (N, V) and None."""


@dataclass
class DistillationConfig(FairseqDataclass):  # type: ignore[misc]
    """Options of distillation, in addition to those of fairseq's criterion."""

    teacher: Optional[str] = field(  # noqa: UP045  fairseq reads this form
        default=None,
        metadata={
            "help": "teacher: a checkpoint of a model (of a supernet, the largest subnet) with the same task and"
            " dictionaries, or 'largest' for the largest subnet of --sampling sandwich"
        },
    )
    distill_weight: float = field(
        default=0.5,
        metadata={"help": "weight w of the loss against the teacher; the loss against labels has weight 1 - w"},
    )
    distill_temperature: float = field(
        default=1.0, metadata={"help": "temperature of the logits of teacher and student"}
    )


def check_options(options: Any) -> None:
    if not options.teacher:
        raise ConfigError(
            "--teacher is missing; give --teacher FILE or --teacher largest, or a --criterion without distillation"
        )
    check_ranges(options, DISTILLATION_RANGES)


class DistillationMixin:
    """Mixin that adds a teacher to a criterion of fairseq; inherit it first.

    The training loss is ``(1 - w)`` times fairseq's loss plus ``w`` times ``KL(teacher || student) * T^2``. The
    validation loss is fairseq's.

    With ``--teacher largest``, the largest subnet is trained on labels only, and is the teacher of other subnets in the
    same batch (Yu et al. 2020, BigNAS, section 3.1).
    """

    training: bool
    padding_idx: int
    smoothing = 0.0
    sentence_avg = False
    """Divide the loss by the number of sentences instead of tokens."""

    def set_up(self, cfg: Any, task: Any) -> None:
        with one_line_errors():
            check_options(cfg)
            self.largest_first = cfg.teacher == LARGEST
            if self.largest_first and str(getattr(options_of(task), "supernet_sampling", "")) != "sandwich":
                raise ConfigError(
                    "--teacher largest needs the largest subnet in each update; give --task supernet_* and --sampling"
                    " sandwich, or --teacher FILE"
                )
        keep_all_sentences()
        self.options, self._task = cfg, task
        self.teacher: Any = None
        self._shared = False
        self._latest: tuple[Any, Any] | None = None

    @contextmanager
    def one_batch(self) -> Iterator[None]:
        """Compute the teacher's output once for all forward passes on one batch, in a ``with`` block."""
        self._shared = True
        try:
            yield
        finally:
            self._shared, self._latest = False, None

    def forward(self, model: Any, sample: dict[str, Any], reduce: bool = True) -> tuple[Any, Any, dict[str, Any]]:
        if not (model.training and reduce):
            return self.plain(model, sample, reduce)
        target, tokens, run = self.prepare_targets(sample)
        loss, log = self.training_loss(model, sample, target, tokens, run)
        sentences = sample["target"].size(0)
        size = sentences if self.sentence_avg else tokens
        return loss, size, {**log, "ntokens": sample["ntokens"], "nsentences": sentences, "sample_size": size}

    def plain(self, model: Any, sample: dict[str, Any], reduce: bool) -> tuple[Any, Any, dict[str, Any]]:
        return super().forward(model, sample, reduce)  # type: ignore[misc,no-any-return]

    def prepare_targets(self, sample: dict[str, Any]) -> tuple[Tensor, Any, Callable[[Any], Outputs]]:
        """Return targets (N,), their number without padding, and a function that runs a network on the batch."""
        return sample["target"].view(-1), sample["ntokens"], lambda net: projected_outputs(net, sample)

    def training_loss(
        self, model: Any, sample: dict[str, Any], target: Tensor, tokens: Any, run: Callable[[Any], Outputs]
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """Return the training loss of a batch and the logged losses, summed over tokens.

        Args:
            target, tokens, run: as returned by :meth:`prepare_targets`.
        """
        student = model
        while isinstance(getattr(student, "module", None), nn.Module):
            student = student.module
        teacher = self._teacher_output(student, sample, run)
        outputs = run(model)
        if teacher is None:
            self._latest = sample, teacher_output(outputs, self.options.distill_temperature)
            loss, nll = self._label_loss(outputs, target)
            return loss, {"loss": loss.detach(), "nll_loss": nll.detach()}
        sums = self._sums(outputs, target, teacher)
        return sums.loss, {"loss": sums.loss.detach(), "nll_loss": sums.nll, "distill_loss": sums.distilled}

    def _teacher_output(self, student: Any, sample: dict[str, Any], run: Any) -> Any:
        """Return the teacher's output; None if the student itself is the teacher."""
        if self._latest is not None and self._latest[0] is sample:
            return self._latest[1]
        with one_line_errors():
            if self.largest_first:
                if not self._shared:
                    raise ConfigError(
                        "--teacher largest needs a search space with more than one architecture; give --teacher FILE"
                    )
                if self.options.distill_weight == 1 and _untrained(student.args):
                    raise ConfigError(
                        "with --teacher largest and --distill-weight 1, most subnets learn only from an untrained"
                        " network; give a smaller --distill-weight, or trained weights with --finetune-from-model"
                    )
                return None
            if self.teacher is None:
                self.teacher = FileTeacher(
                    Path(self.options.teacher), self._task, self.options.distill_temperature, student
                )
            output = self.teacher.output(run)
        if self._shared:
            self._latest = sample, output
        return output

    def _label_loss(self, outputs: Outputs, target: Tensor) -> tuple[Tensor, Tensor]:
        x, table = outputs
        if table is None:
            return smoothed_loss(x, target, self.smoothing, self.padding_idx)
        return projected_smoothed_loss(x, table, target, self.smoothing, self.padding_idx)

    def _sums(self, outputs: Outputs, target: Tensor, teacher: Any) -> DistilledSums:
        x, table = outputs
        settings: dict[str, Any] = {
            "weight": self.options.distill_weight,
            "temperature": self.options.distill_temperature,
            "smoothing": self.smoothing,
            "padding_idx": self.padding_idx,
        }
        if table is None:
            return distilled_loss(x, target, teacher, **settings)
        return projected_distilled_loss(x, table, target, teacher, **settings)

    @classmethod
    def reduce_metrics(cls, logging_outputs: list[dict[str, Any]]) -> None:
        super().reduce_metrics(logging_outputs)  # type: ignore[misc]
        total = sum(log.get("sample_size", 0) for log in logging_outputs)
        if any("distill_loss" in log for log in logging_outputs):
            value = sum(log.get("distill_loss", 0) for log in logging_outputs)
            metrics.log_scalar("distill_loss", value / total / math.log(2), total, round=3)


def _untrained(options: Any) -> bool:
    restored = Path(options.save_dir, options.restore_file), Path(options.restore_file)
    return not options.finetune_from_model and not any(file.exists() for file in restored)


def projected_outputs(model: Any, sample: dict[str, Any]) -> Outputs:
    """Return features and output embeddings of a model; logits if the model does not provide them."""
    if not hasattr(model, "active_subnet"):
        return model(**sample["net_input"])[0].flatten(0, 1), None
    features, extra = model(**sample["net_input"], features_only=True)
    return features.flatten(0, 1), extra["output"]


# -- fairseq's criteria ------------------------------------------------------------------------------------------------


@dataclass
class DistilledLabelSmoothedConfig(DistillationConfig, LabelSmoothedCrossEntropyCriterionConfig):  # type: ignore[misc]
    """Options of ``distilled_label_smoothed_cross_entropy``."""


@dataclass
class DistilledCrossEntropyConfig(DistillationConfig, CrossEntropyCriterionConfig):  # type: ignore[misc]
    """Options of ``distilled_cross_entropy``."""


@dataclass
class DistilledMaskedLmConfig(DistillationConfig, MaskedLmConfig):  # type: ignore[misc]
    """Options of ``distilled_masked_lm``."""


class DistilledLabelSmoothedCrossEntropy(DistillationMixin, LabelSmoothedCrossEntropyCriterion):  # type: ignore[misc]
    """``label_smoothed_cross_entropy`` with a teacher, for translation."""

    def __init__(self, task: Any, cfg: DistilledLabelSmoothedConfig) -> None:
        super().__init__(task, cfg.sentence_avg, cfg.label_smoothing, cfg.ignore_prefix_size, cfg.report_accuracy)
        self.smoothing = cfg.label_smoothing
        with one_line_errors():
            if cfg.ignore_prefix_size:
                raise ConfigError("--ignore-prefix-size is not supported with a teacher; leave it out")
        self.set_up(cfg, task)

    def plain(self, model: Any, sample: dict[str, Any], reduce: bool) -> tuple[Any, Any, dict[str, Any]]:
        if not hasattr(model, "active_subnet"):
            return super().plain(model, sample, reduce)
        return FusedLabelSmoothedCrossEntropy.forward(self, model, sample, reduce)  # type: ignore[no-any-return]


class DistilledCrossEntropy(DistillationMixin, CrossEntropyCriterion):  # type: ignore[misc]
    """``cross_entropy`` with a teacher, for language models."""

    def __init__(self, task: Any, cfg: DistilledCrossEntropyConfig) -> None:
        super().__init__(task, cfg.sentence_avg)
        self.set_up(cfg, task)


class DistilledMaskedLm(DistillationMixin, MaskedLmLoss):  # type: ignore[misc]
    """``masked_lm`` with a teacher that gets the same masked sentences."""

    def __init__(self, task: Any, cfg: DistilledMaskedLmConfig) -> None:
        super().__init__(cfg, task)
        self.set_up(cfg, task)

    def prepare_targets(self, sample: dict[str, Any]) -> tuple[Tensor, Any, Callable[[Any], Outputs]]:
        target = sample["target"]
        masked = target.ne(self.padding_idx)
        run: Callable[[Any], Outputs] = lambda net: (  # noqa: E731
            net(**sample["net_input"], masked_tokens=masked)[0].flatten(0, -2),
            None,
        )
        return target[masked], masked.int().sum(), run


for _name, _criterion, _config in (
    ("distilled_label_smoothed_cross_entropy", DistilledLabelSmoothedCrossEntropy, DistilledLabelSmoothedConfig),
    ("distilled_cross_entropy", DistilledCrossEntropy, DistilledCrossEntropyConfig),
    ("distilled_masked_lm", DistilledMaskedLm, DistilledMaskedLmConfig),
):
    if _name not in CRITERION_REGISTRY:
        register_criterion(_name, dataclass=_config)(_criterion)
