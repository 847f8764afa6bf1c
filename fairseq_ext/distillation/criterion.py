"""fairseq's criteria with a teacher, ``distilled_label_smoothed_cross_entropy``, ``distilled_cross_entropy`` and
``distilled_masked_lm``.

Annotations are not postponed: fairseq reads option types. Shapes: B batch, T length, N = B * T rows, C channels,
V vocabulary.
"""

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
from fairseq_ext.distillation.teacher import FileTeacher, differences, teacher_output, with_states
from fairseq_ext.patches import keep_all_sentences
from nas_core.errors import ConfigError
from nas_core.layers.smoothed_loss import projected_smoothed_loss
from nas_core.options import check_ranges
from nas_core.supernet.teacher.losses import DISTILLATION_RANGES
from nas_core.supernet.teacher.projected import DistilledSums, distilled_loss, projected_distilled_loss, smoothed_loss

LARGEST = "largest"
"""Value of ``--teacher`` for the largest subnet of the sandwich."""
_CACHED_WORDS = 32
"""Default number of cached words per token."""
_LOGGED = ("distill_loss", "hidden_loss", "attention_loss")
Outputs = tuple[Tensor, Tensor | None]
"""Features (N, C) and the output table (V, C), or logits (N, V) and None."""


@dataclass
class DistillationConfig(FairseqDataclass):  # type: ignore[misc]
    """Options of distillation, in addition to those of the own loss."""

    teacher: Optional[str] = field(  # noqa: UP045  fairseq reads this form
        default=None,
        metadata={
            "help": "checkpoint of a model of the same task and dictionaries (of a supernet: its largest subnet), or"
            " 'largest': in sandwich sampling the largest subnet is the teacher of the others"
        },
    )
    distill_weight: float = field(
        default=0.5, metadata={"help": "weight of the teacher's loss; that of the labels has the rest of 1"}
    )
    distill_temperature: float = field(default=1.0, metadata={"help": "divides the logits of both networks"})
    distill_hidden: float = field(
        default=0.0,
        metadata={
            "help": "weight of the difference between layer inputs of teacher and student, which come from one"
            " 'nas-ext elastic'"
        },
    )
    distill_attention: float = field(
        default=0.0, metadata={"help": "weight of the difference between attention outputs"}
    )
    teacher_cache: Optional[str] = field(  # noqa: UP045
        default=None,
        metadata={"help": "folder for the teacher's most probable words of each training token"},
    )
    teacher_top_k: int = field(
        default=0,
        metadata={
            "help": "number of most probable words that are compared one by one; 0: all,"
            f" with --teacher-cache {_CACHED_WORDS}"
        },
    )


def check_options(options: Any) -> None:
    """Check options that need no file, and fill in dependent defaults."""
    if not options.teacher:
        raise ConfigError(
            "this criterion needs a teacher; give --teacher FILE or --teacher largest, or another criterion"
        )
    check_ranges(options, DISTILLATION_RANGES)
    if not options.teacher_cache:
        return
    if options.teacher == LARGEST or options.distill_hidden or options.distill_attention:
        raise ConfigError(
            "--teacher-cache stores the probabilities of a fixed teacher, without hidden states and attention; drop it,"
            " or --teacher largest, --distill-hidden and --distill-attention"
        )
    options.teacher_top_k = options.teacher_top_k or _CACHED_WORDS


class Distilled:
    """Mixin for a criterion with a teacher; inherit it before fairseq's criterion.

    The training loss is ``(1 - w)`` times the criterion's own loss plus ``w`` times ``KL(teacher || student) * T^2``,
    plus optional differences between layers. The validation loss is the criterion's own.

    All subnets of a batch share a file teacher's output. With ``--teacher largest`` the largest subnet runs first with
    its own loss, and is the teacher of the others (Yu et al. 2020, BigNAS, section 3.1).
    """

    training: bool
    padding_idx: int
    smoothing = 0.0
    sentence_avg = False
    """Divide the loss by the number of sentences, not tokens."""
    cached = True
    """Targets are the same in each epoch and can be cached."""

    def set_up(self, cfg: Any, task: Any) -> None:
        with one_line_errors():
            check_options(cfg)
            if cfg.teacher_cache and not self.cached:
                raise ConfigError("--teacher-cache needs fixed inputs, and each epoch masks other tokens; drop it")
            self.largest_first = cfg.teacher == LARGEST
            if self.largest_first and str(getattr(options_of(task), "supernet_sampling", "")) != "sandwich":
                raise ConfigError(
                    "--teacher largest needs the largest subnet of each batch; add --sampling sandwich and a supernet's"
                    " task, or give --teacher a file"
                )
        keep_all_sentences()
        self.options, self._task = cfg, task
        self.teacher: Any = None
        self._shared = self._dummy = False
        self._latest: tuple[Any, Any] | None = None

    @contextmanager
    def one_batch(self, shared: bool = True, dummy: bool = False) -> Iterator[None]:
        """Set how the forwards in the block, all of one batch, use the teacher.

        Args:
            shared: compute the teacher's output once for all forwards.
            dummy: bypass the teacher's cache, because the batch is not training data.
        """
        self._shared, self._dummy = shared, dummy
        try:
            yield
        finally:
            self._shared, self._dummy, self._latest = False, False, None

    def train(self, mode: bool = True) -> Any:
        """Set the mode; before a validation, flush the teacher's cache."""
        if not mode and getattr(self, "teacher", None) is not None:
            self.teacher.flush()
        return super().train(mode)  # type: ignore[misc]

    def forward(self, model: Any, sample: dict[str, Any], reduce: bool = True) -> tuple[Any, Any, dict[str, Any]]:
        if not (model.training and reduce):
            return self.plain(model, sample, reduce)
        target, tokens, run = self.predicted(sample)
        loss, log = self.distilled(model, sample, target, tokens, run)
        sentences = sample["target"].size(0)
        size = sentences if self.sentence_avg else tokens
        return loss, size, {**log, "ntokens": sample["ntokens"], "nsentences": sentences, "sample_size": size}

    def plain(self, model: Any, sample: dict[str, Any], reduce: bool) -> tuple[Any, Any, dict[str, Any]]:
        return super().forward(model, sample, reduce)  # type: ignore[misc,no-any-return]

    def predicted(self, sample: dict[str, Any]) -> tuple[Tensor, Any, Callable[[Any], Outputs]]:
        """Return targets (N,), their number without padding, and a function from a network to its outputs."""
        return sample["target"].view(-1), sample["ntokens"], lambda net: projected_outputs(net, sample)

    def distilled(
        self, model: Any, sample: dict[str, Any], target: Tensor, tokens: Any, run: Callable[[Any], Outputs]
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """Return the training loss of a batch and its logged parts, summed over tokens."""
        student, options = model, self.options
        while isinstance(getattr(student, "module", None), nn.Module):
            student = student.module
        states = None
        teacher = self._teacher_output(student, sample, run)
        if options.distill_hidden or options.distill_attention:
            outputs, states = with_states(student, lambda: run(model))
        else:
            outputs = run(model)
        if teacher is None:
            self._latest = sample, teacher_output(outputs, options.teacher_top_k, options.distill_temperature, states)
            loss, nll = self._own_loss(outputs, target)
            return loss, {"loss": loss.detach(), "nll_loss": nll.detach()}
        sums = self._sums(outputs, target, teacher.rows)
        loss = sums.loss
        log = {"loss": loss.detach(), "nll_loss": sums.nll, "distill_loss": sums.distilled}
        if states is None or teacher.states is None:
            return loss, log
        for name, weight, ours, theirs in (
            ("hidden_loss", options.distill_hidden, states.hidden, teacher.states.hidden),
            ("attention_loss", options.distill_attention, states.attention, teacher.states.attention),
        ):
            if weight:
                difference = differences(ours, theirs, self.masks(sample)) * tokens
                loss = loss + weight * difference
                log[name] = difference.detach()
        log["loss"] = loss.detach()
        return loss, log

    def masks(self, sample: dict[str, Any]) -> dict[str, Tensor]:
        """Return token masks (B, T) by side of the network."""
        decoder = sample["target"].ne(self._task.target_dictionary.pad())
        if "prev_output_tokens" not in sample["net_input"]:
            return {"": decoder}
        return {"encoder": sample["net_input"]["src_tokens"].ne(self._task.source_dictionary.pad()), "decoder": decoder}

    def _teacher_output(self, student: Any, sample: dict[str, Any], run: Any) -> Any:
        """Return the teacher's output; None if the student is the largest subnet and the teacher."""
        if self._latest is not None and self._latest[0] is sample:
            return self._latest[1]
        with one_line_errors():
            if self.largest_first:
                if not self._shared:
                    raise ConfigError("--teacher largest needs a space of more than one network; give --teacher a file")
                return None
            if self.teacher is None:
                self.teacher = FileTeacher(Path(self.options.teacher), self._task, self.options, student)
            defer = not self._shared and hasattr(student, "active_subnet")
            output = self.teacher.output(sample, run, defer, cached=not self._dummy)
        if self._shared:
            self._latest = sample, output
        return output

    def _own_loss(self, outputs: Outputs, target: Tensor) -> tuple[Tensor, Tensor]:
        x, table = outputs
        if table is None:
            return smoothed_loss(x, target, self.smoothing, self.padding_idx)
        return projected_smoothed_loss(x, table, target, self.smoothing, self.padding_idx)

    def _sums(self, outputs: Outputs, target: Tensor, rows: Any) -> DistilledSums:
        x, table = outputs
        settings: dict[str, Any] = {
            "weight": self.options.distill_weight,
            "temperature": self.options.distill_temperature,
            "smoothing": self.smoothing,
            "padding_idx": self.padding_idx,
        }
        if table is None:
            return distilled_loss(x, target, rows, **settings)
        return projected_distilled_loss(x, table, target, rows, **settings)

    @classmethod
    def reduce_metrics(cls, logging_outputs: list[dict[str, Any]]) -> None:
        """Log fairseq's metrics, and the teacher's loss in bits per token."""
        super().reduce_metrics(logging_outputs)  # type: ignore[misc]
        total = sum(log.get("sample_size", 0) for log in logging_outputs)
        for name in _LOGGED:
            if any(name in log for log in logging_outputs):
                value = sum(log.get(name, 0) for log in logging_outputs)
                scale = math.log(2) if name == "distill_loss" else 1.0
                metrics.log_scalar(name, value / total / scale, total, round=3)


def projected_outputs(model: Any, sample: dict[str, Any]) -> Outputs:
    """Return features and output table if the network provides them, else logits."""
    if not hasattr(model, "active_subnet"):
        output = getattr(getattr(model, "decoder", None), "output_projection", None)
        if model.training or not isinstance(output, nn.Linear) or output.bias is not None:
            return model(**sample["net_input"])[0].flatten(0, 1), None
        features, _ = model(**sample["net_input"], features_only=True)  # a teacher, whose logits need not be held
        return features.flatten(0, 1), output.weight
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
        return FusedLabelSmoothedCrossEntropy.forward(self, model, sample, reduce)  # type: ignore[no-any-return]


class DistilledCrossEntropy(Distilled, CrossEntropyCriterion):  # type: ignore[misc]
    """``cross_entropy`` with a teacher, for language models."""

    def __init__(self, task: Any, cfg: DistilledCrossEntropyConfig) -> None:
        super().__init__(task, cfg.sentence_avg)
        self.set_up(cfg, task)


class DistilledMaskedLm(Distilled, MaskedLmLoss):  # type: ignore[misc]
    """``masked_lm`` with a teacher that reads the same masked sentences."""

    cached = False

    def __init__(self, task: Any, cfg: DistilledMaskedLmConfig) -> None:
        super().__init__(cfg, task)
        self.set_up(cfg, task)

    def predicted(self, sample: dict[str, Any]) -> tuple[Tensor, Any, Callable[[Any], Outputs]]:
        target = sample["target"]
        masked = target.ne(self.padding_idx)
        run: Callable[[Any], Outputs] = lambda net: (  # noqa: E731
            net(**sample["net_input"], masked_tokens=masked)[0].flatten(0, -2),
            None,
        )
        return target[masked], masked.int().sum(), run

    def masks(self, sample: dict[str, Any]) -> dict[str, Tensor]:
        """Return the mask (B, T) of all tokens, masked or not."""
        return {"": sample["net_input"]["src_tokens"].ne(self.padding_idx)}


for _name, _criterion, _config in (
    ("distilled_label_smoothed_cross_entropy", DistilledLabelSmoothedCrossEntropy, DistilledLabelSmoothedConfig),
    ("distilled_cross_entropy", DistilledCrossEntropy, DistilledCrossEntropyConfig),
    ("distilled_masked_lm", DistilledMaskedLm, DistilledMaskedLmConfig),
):
    if _name not in CRITERION_REGISTRY:
        register_criterion(_name, dataclass=_config)(_criterion)
