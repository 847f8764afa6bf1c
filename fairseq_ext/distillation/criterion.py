"""What every criterion with a teacher does beside its own loss."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from fairseq import metrics
from torch import Tensor, nn

from fairseq_ext.batching import keep_all_sentences
from fairseq_ext.compat import one_line_errors
from fairseq_ext.data import options_of
from fairseq_ext.distillation.options import LARGEST, check_options
from nas_core.errors import ConfigError
from nas_core.layers.smoothed_loss import projected_smoothed_loss
from nas_core.supernet.teacher.projected import DistilledSums, distilled_loss, projected_distilled_loss, smoothed_loss

if TYPE_CHECKING:
    from fairseq_ext.distillation.layers import LayerStates
    from fairseq_ext.distillation.teacher import Answer, FileTeacher

_LOGGED = ("distill_loss", "hidden_loss", "attention_loss")


class Distilled:
    """What a criterion inherits before fairseq's own of that name.

    In training the loss is ``(1 - w)`` times the own loss and ``w`` times ``KL(teacher || student) * T^2``, and, where
    asked for, what the layers of both differ by per token. In validation it is the own loss alone, so that checkpoints
    compare with those of a training without a teacher.

    A teacher of a file says what it says once for a batch, however many subnets learn from it. With ``--teacher
    largest`` the first subnet of a batch, the largest, has its own loss, and the others learn from what it gave, which
    is not differentiated (Yu et al. 2020, BigNAS, section 3.1, "inplace distillation").
    """

    training: bool
    padding_idx: int
    smoothing = 0.0
    """Share of the own loss that is spread over all words."""
    sentence_avg = False
    """Whether the loss is divided by the number of sentences."""
    cached = True
    """Whether batches hold the same targets whenever they are read."""

    def set_up(self, cfg: Any, task: Any) -> None:
        """Read the options; in ``fairseq-train``, open the teacher at once."""
        with one_line_errors():
            check_options(cfg)
            if cfg.teacher_cache and not self.cached:
                raise ConfigError(
                    "--teacher-cache keeps what a teacher says about fixed data, and masks are drawn anew for each"
                    " epoch; drop it"
                )
            self.largest_first = cfg.teacher == LARGEST
            if self.largest_first and str(getattr(options_of(task), "supernet_sampling", "")) != "sandwich":
                raise ConfigError("--teacher largest needs a supernet's task with --sampling sandwich, which runs the"
                                  " largest subnet on each batch; add it, or give --teacher a file")  # fmt: skip
        keep_all_sentences()
        self.options, self._task = cfg, task
        self.teacher: FileTeacher | None = None
        self._shared = self._dummy = False
        self._memo: tuple[Any, Answer] | None = None
        if Path(sys.argv[0]).name == "fairseq-train" or Path(sys.argv[0]).parts[-2:] == ("fairseq_cli", "train.py"):
            self._opened()  # a wrong teacher is told before any other work; other commands may do without it

    def _opened(self) -> FileTeacher | None:
        if self.teacher is None and not self.largest_first:
            from fairseq_ext.distillation.teacher import FileTeacher

            with one_line_errors():
                self.teacher = FileTeacher(Path(self.options.teacher), self._task, self.options)
        return self.teacher

    @contextmanager
    def one_batch(self) -> Iterator[None]:
        """Inside, all forwards are of one batch: what the teacher says about it is computed once."""
        self._shared = True
        try:
            yield
        finally:
            self._shared, self._memo = False, None

    @contextmanager
    def dummy_batch(self) -> Iterator[None]:
        """Inside, the batch is no training data and is not counted: what is kept of the teacher is left alone."""
        self._dummy = True
        try:
            yield
        finally:
            self._dummy = False

    def train(self, mode: bool = True) -> Any:
        """Change the mode as any module does; what a teacher said is on the disk before a validation, and so before a
        checkpoint."""
        teacher: FileTeacher | None = getattr(self, "teacher", None)
        if not mode and teacher is not None:
            teacher.flush()
        return super().train(mode)  # type: ignore[misc]

    def forward(self, model: Any, sample: dict[str, Any], reduce: bool = True) -> tuple[Any, Any, dict[str, Any]]:
        """The loss, by how much it is divided, and what is logged."""
        if not (model.training and reduce):
            return self.plain(model, sample, reduce)
        target, tokens, run = self.predicted(sample)
        loss, log = self.distilled(model, sample, target, tokens, run)
        sentences = sample["target"].size(0)
        size = sentences if self.sentence_avg else tokens
        return loss, size, {**log, "ntokens": sample["ntokens"], "nsentences": sentences, "sample_size": size}

    def plain(self, model: Any, sample: dict[str, Any], reduce: bool) -> tuple[Any, Any, dict[str, Any]]:
        """The own loss alone, as fairseq's criterion gives it."""
        result: tuple[Any, Any, dict[str, Any]] = super().forward(model, sample, reduce)  # type: ignore[misc]
        return result

    def predicted(self, sample: dict[str, Any]) -> tuple[Tensor, Any, Callable[[Any], tuple[Tensor, Tensor | None]]]:
        """The targets (N,) of a batch, how many of them are no padding, and what runs a network on it, see
        :meth:`distilled`."""
        return sample["target"].view(-1), sample["ntokens"], lambda net: projected_outputs(net, sample)

    # -- one forward ---------------------------------------------------------------------------------------------------

    def distilled(
        self, model: Any, sample: dict[str, Any], target: Tensor, tokens: Any, run: Any
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """The loss of a batch in training and its parts as they are logged, all sums over tokens.

        Args:
            target: (N,)
            tokens: how many of them are no padding.
            run: of a network: features (N, C) and their table (V, C), or logits (N, V) and None.
        """
        student = _unwrapped(model)
        answer = self._answer(student, sample, run)
        outputs, states = self._student(model, student, run)
        if answer is None:
            from fairseq_ext.distillation.teacher import said

            self._memo = sample, said(outputs, self.options.teacher_top_k, self.options.distill_temperature, states)
            loss, nll = self._own(outputs, target)
            return loss, {"loss": loss.detach(), "nll_loss": nll.detach()}
        sums = self._sums(outputs, target, answer)
        log = {"loss": sums.loss.detach(), "nll_loss": sums.nll, "distill_loss": sums.distilled}
        if states is None or answer.states is None:
            return sums.loss, log
        return self._with_layers(sums.loss, log, self.masks(sample), tokens, states, answer.states)

    def masks(self, sample: dict[str, Any]) -> dict[str, Tensor]:
        """Where tokens are (B, T), by the side of the network that reads them."""
        decoder = sample["target"].ne(self._task.target_dictionary.pad())
        if "prev_output_tokens" not in sample["net_input"]:
            return {"": decoder}
        return {"encoder": sample["net_input"]["src_tokens"].ne(self._task.source_dictionary.pad()), "decoder": decoder}

    def _answer(self, student: Any, sample: dict[str, Any], run: Any) -> Answer | None:
        """None: this is the largest subnet, from which the others of the batch will learn."""
        if self._memo is not None and self._memo[0] is sample:
            return self._memo[1]
        teacher = self._opened()
        if teacher is None:
            with one_line_errors():
                if not self._shared:
                    raise ConfigError("--teacher largest needs a space of more than one network; give --teacher a file")
            return None
        with one_line_errors():
            teacher.prepare(student)
            once = not self._shared and hasattr(student, "active_subnet")
            answer = teacher.answer(sample, run, once, kept=not self._dummy)
        if self._shared:
            self._memo = sample, answer
        return answer

    def _student(self, model: Any, student: Any, run: Any) -> tuple[tuple[Tensor, Tensor | None], LayerStates | None]:
        if self.options.distill_hidden or self.options.distill_attention:
            from fairseq_ext.distillation.layers import with_states

            return with_states(student, lambda: run(model))
        return run(model), None

    def _own(self, outputs: tuple[Tensor, Tensor | None], target: Tensor) -> tuple[Tensor, Tensor]:
        x, table = outputs
        if table is None:
            return smoothed_loss(x, target, self.smoothing, self.padding_idx)
        return projected_smoothed_loss(x, table, target, self.smoothing, self.padding_idx)

    def _sums(self, outputs: tuple[Tensor, Tensor | None], target: Tensor, answer: Answer) -> DistilledSums:
        x, table = outputs
        settings: dict[str, Any] = {
            "weight": self.options.distill_weight,
            "temperature": self.options.distill_temperature,
            "smoothing": self.smoothing,
            "padding_idx": self.padding_idx,
        }
        if table is None:
            return distilled_loss(x, target, answer.rows, **settings)
        return projected_distilled_loss(x, table, target, answer.rows, **settings)

    def _with_layers(
        self,
        loss: Tensor,
        log: dict[str, Tensor],
        masks: dict[str, Tensor],
        tokens: Any,
        states: LayerStates,
        wanted: LayerStates,
    ) -> tuple[Tensor, dict[str, Tensor]]:
        from fairseq_ext.distillation.layers import differences

        for name, weight, ours, theirs in (
            ("hidden_loss", self.options.distill_hidden, states.hidden, wanted.hidden),
            ("attention_loss", self.options.distill_attention, states.attention, wanted.attention),
        ):
            if weight:
                difference = differences(ours, theirs, masks) * tokens
                loss = loss + weight * difference
                log[name] = difference.detach()
        log["loss"] = loss.detach()
        return loss, log

    @classmethod
    def reduce_metrics(cls, logging_outputs: list[dict[str, Any]]) -> None:
        """fairseq's own, and what the teacher added, in bits per token like these."""
        super().reduce_metrics(logging_outputs)  # type: ignore[misc]
        total = sum(log.get("sample_size", 0) for log in logging_outputs)
        for name in _LOGGED:
            if any(name in log for log in logging_outputs):
                value = sum(log.get(name, 0) for log in logging_outputs)
                scale = math.log(2) if name == "distill_loss" else 1.0
                metrics.log_scalar(name, value / total / scale, total, round=3)


def projected_outputs(model: Any, sample: dict[str, Any]) -> tuple[Tensor, Tensor | None]:
    """Features (N, C) and their table (V, C) of networks that give them, logits (N, V) and None of others."""
    if not hasattr(model, "active_subnet"):
        output = getattr(getattr(model, "decoder", None), "output_projection", None)
        if model.training or not isinstance(output, nn.Linear) or output.bias is not None:
            return model(**sample["net_input"])[0].flatten(0, 1), None
        features, _ = model(**sample["net_input"], features_only=True)  # of a teacher: its logits need not be held
        return features.flatten(0, 1), output.weight
    features, extra = model(**sample["net_input"], features_only=True)
    return features.flatten(0, 1), extra["output"]


def _unwrapped(model: Any) -> Any:
    while hasattr(model, "module") and isinstance(model.module, torch.nn.Module):
        model = model.module
    return model
