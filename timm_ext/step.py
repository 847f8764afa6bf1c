"""Weight updates: mixed precision, gradient scaling, averaging over workers and clipping."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import AbstractContextManager

import torch
from torch import Tensor, nn

from nas_core.errors import NasExtError
from nas_core.precision import computing_in, tf32
from timm_ext.workers import Workers

_MIN_SCALE = 1e-4
"""Smallest loss scale in fp16, as in fairseq; below it, training stops with an error."""


class Step:
    """Backward passes and weight updates.

    Args:
        clip: largest gradient norm; 0: no clipping.
    """

    def __init__(
        self,
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        precision: str,
        clip: float,
        workers: Workers,
    ) -> None:
        self.model, self.optimizer, self.precision, self.clip, self.workers = model, optimizer, precision, clip, workers
        self.scaler = torch.amp.GradScaler(workers.device.type, enabled=precision == "fp16")

    def backward(self, forward: Callable[[], Tensor], context: AbstractContextManager[None]) -> Tensor:
        """Call ``forward`` in the context manager ``context``, add the gradient of its loss, and return the loss."""
        device = self.workers.device
        with context, computing_in(self.precision, device):
            loss = forward()
        with tf32(self.precision == "tf32"):
            self.scaler.scale(loss).backward()
        return loss.detach()

    def update(self) -> None:
        """Update the weights with the mean gradient of all workers; in fp16, skip non-finite gradients."""
        self.workers.average_gradients(self.model.parameters())
        if self.clip:
            self.scaler.unscale_(self.optimizer)
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.clip)
        self.scaler.step(self.optimizer)
        self.scaler.update()

    def check_scale(self, update: int) -> None:
        if self.precision == "fp16" and (scale := self.scaler.get_scale()) < _MIN_SCALE:
            error = NasExtError(
                f"gradients in fp16 are not finite at update {update}, even with a loss scale of {scale:.1e}; lower"
                " --lr, give --clip-grad, or give --precision bf16 or fp32"
            )
            raise self.workers.shared_error(error)


class Losses:
    """Training losses of an epoch; they stay on the device until :meth:`read`."""

    def __init__(self, step: Step) -> None:
        self.step = step
        self.total, self.count = 0.0, 0
        self._waiting: dict[int, list[Tensor]] = {}

    def add(self, update: int, losses: list[Tensor]) -> None:
        self._waiting.setdefault(update, []).extend(losses)

    def read(self) -> float:
        """Return the mean loss over workers and over updates since the last call; synchronises the device."""
        if not self._waiting:
            return math.nan
        flat = torch.stack([loss for losses in self._waiting.values() for loss in losses])
        values = iter(self.step.workers.mean(flat).tolist())
        sums = {update: sum((next(values) for _ in losses), 0.0) for update, losses in self._waiting.items()}
        self._waiting = {}
        self.step.check_scale(max(sums))
        for update, loss in sums.items():
            if not math.isfinite(loss) and self.step.precision != "fp16":
                error = NasExtError(f"the loss is {loss} at update {update}; lower --lr or give --clip-grad")
                raise self.step.workers.shared_error(error)
        finite = [loss for loss in sums.values() if math.isfinite(loss)]
        for loss in finite:  # one by one: the order of additions decides the last bits
            self.total += loss
        self.count += len(finite)
        return sum(finite) / len(finite) if finite else math.nan

    @property
    def mean(self) -> float:
        if not self.count:
            error = NasExtError("no loss of this epoch is finite; lower --lr, or give --precision bf16 or fp32")
            raise self.step.workers.shared_error(error)
        return self.total / self.count
