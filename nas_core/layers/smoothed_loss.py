"""Output projection and label-smoothed cross entropy in one operation, without storing all logits.

Logits and gradients are computed for a chunk of rows at a time.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from nas_core.layers.torch_modes import without_autocast

# Logits in memory at a time on a CPU, about its L2 cache. An accelerator has 256 times as many.
_CHUNK_ELEMENTS = 1 << 19

# Matrix products with fewer rows are slow.
_MIN_ROWS = 64

# Gradient scale in float16, which cannot represent small probabilities.
_FP16_SCALE = 1024.0


class RowLosses(Protocol):
    """Loss function of chunks of logits ``(n, V)``."""

    @property
    def sums(self) -> int:
        """Number of sums that a call returns. Only the first one, the loss, has a gradient."""

    @property
    def steepest(self) -> float:
        """Largest absolute gradient with respect to a logit."""

    def __call__(self, rows: slice, logits: Tensor, gradient: bool) -> tuple[tuple[Tensor, ...], Tensor | None]:
        """Return sums over the rows and, if requested, the gradient of the first sum by ``logits`` ``(n, V)``.

        ``logits`` may be overwritten.
        """


class _ProjectedLoss(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, features: Tensor, table: Tensor, loss: RowLosses, kind: torch.dtype) -> tuple[Tensor, ...]:
        ctx.types = features.dtype, table.dtype
        needs_grad = ctx.needs_input_grad[0] or ctx.needs_input_grad[1]
        features, table = features.to(kind), table.to(kind)
        sums = tuple(features.new_zeros((), dtype=torch.float) for _ in range(loss.sums))
        grads = _Gradients(features, table, loss.steepest) if needs_grad else None
        for rows in row_chunks(len(features), table):
            logits = (features[rows] @ table.t()).float()
            values, grad_logits = loss(rows, logits, needs_grad)
            for total, value in zip(sums, values, strict=True):
                total += value
            if grads is not None and grad_logits is not None:
                grads.add(rows, grad_logits)
        if grads is not None:
            ctx.save_for_backward(grads.grad_features, grads.grad_table)
        ctx.mark_non_differentiable(*sums[1:])
        return sums

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        saved = zip(ctx.saved_tensors, ctx.types, strict=True)
        return (*((tensor * grads[0].to(tensor)).to(kind) for tensor, kind in saved), None, None)


def row_chunks(rows: int, table: Tensor) -> Iterator[slice]:
    """Yield slices of rows whose logits fit into memory. ``table`` ``(V, C)`` are output embeddings."""
    elements = _CHUNK_ELEMENTS * (1 if table.device.type == "cpu" else 256)
    chunk = max(_MIN_ROWS, elements // table.shape[0])
    for start in range(0, rows, chunk):
        yield slice(start, start + chunk)


class Smoothed(NamedTuple):
    """Label-smoothed cross entropy and negative log-likelihood."""

    target: Tensor
    """Target tokens ``(N,)``."""
    smoothing: float
    padding_idx: int
    sums: int = 2

    @property
    def steepest(self) -> float:
        return 1.0

    def __call__(self, rows: slice, logits: Tensor, gradient: bool) -> tuple[tuple[Tensor, ...], Tensor | None]:
        loss, nll, norm = self.losses(rows, logits)
        sums = loss.sum(), nll.sum()
        return sums, self.subtract_target(rows, logits.sub_(norm).exp_()) if gradient else None

    def losses(self, rows: slice, logits: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return label-smoothed loss, negative log-likelihood and logsumexp of each row. Losses are 0 at padding."""
        vocab, targets = logits.shape[1], self.target[rows].unsqueeze(1)
        off_target = self.smoothing / (vocab - 1)
        at_target, total = logits.gather(1, targets), logits.sum(1, keepdim=True)
        norm = logits.logsumexp(1, keepdim=True)
        nll = norm - at_target
        loss = (1.0 - self.smoothing - off_target) * nll + off_target * (vocab * norm - total)
        keep = targets.ne(self.padding_idx)
        return loss * keep, nll * keep, norm

    def subtract_target(self, rows: slice, p: Tensor, share: float = 1.0) -> Tensor:
        """Subtract ``share`` times smoothed targets from ``p`` ``(n, V)`` in place, and zero its padding rows."""
        off_target, targets = self.smoothing / (p.shape[1] - 1), self.target[rows].unsqueeze(1)
        on_target = p.new_full(targets.shape, -(1.0 - self.smoothing - off_target) * share)
        return p.sub_(share * off_target).scatter_add_(1, targets, on_target).mul_(targets.ne(self.padding_idx))


class _Gradients:
    def __init__(self, features: Tensor, table: Tensor, steepest: float) -> None:
        self.features, self.table = features, table
        self.scale = _FP16_SCALE / max(1.0, steepest)
        exact = torch.promote_types(features.dtype, torch.float32)
        self.grad_features = torch.empty_like(features, dtype=exact)
        self.grad_table = torch.zeros_like(table, dtype=exact, memory_format=torch.contiguous_format)

    def add(self, rows: slice, grad_logits: Tensor) -> None:
        kind = self.features.dtype
        if kind == self.grad_table.dtype:
            grad = grad_logits.to(kind)
            torch.mm(grad, self.table, out=self.grad_features[rows])
            self.grad_table.addmm_(grad.t(), self.features[rows])
            return
        fp32_output = supports_fp32_output(kind, self.features.device)
        scale = self.scale if fp32_output and kind == torch.float16 else 1.0
        grad = (grad_logits * scale if scale != 1.0 else grad_logits).to(kind)
        product = _mm_fp32 if fp32_output else torch.mm
        self.grad_features[rows] = product(grad, self.table) / scale
        self.grad_table.add_(product(grad.t(), self.features[rows]), alpha=1 / scale)


@functools.cache
def supports_fp32_output(kind: torch.dtype, device: torch.device) -> bool:
    """Return True if PyTorch can return products of 16-bit matrices in float32 (CUDA, PyTorch 2.8 or later)."""
    if device.type != "cuda" or not hasattr(torch.ops.aten.mm, "dtype"):
        return False
    ones = torch.ones(16, 16, dtype=kind, device=device)
    try:
        return _mm_fp32(ones, ones).dtype == torch.float32
    except RuntimeError:  # a build or device without it
        return False


def _mm_fp32(a: Tensor, b: Tensor) -> Tensor:
    product: Tensor = torch.ops.aten.mm.dtype(a, b, torch.float32)
    return product


def product_type(features: Tensor) -> torch.dtype:
    """Return the dtype of matrix products: that of autocast, or that of the features."""
    device = features.device.type
    if features.dtype != torch.float64 and torch.is_autocast_enabled(device):
        return torch.get_autocast_dtype(device)
    return features.dtype


def projected_smoothed_loss(
    features: Tensor, table: Tensor, target: Tensor, smoothing: float, padding_idx: int
) -> tuple[Tensor, Tensor]:
    """Compute label-smoothed loss and negative log-likelihood, summed over all tokens except padding.

    Only the loss has a gradient. Under autocast, softmax, losses and sums of gradients are float32.

    Args:
        features: ``(N, C)``.
        table: output embeddings ``(V, C)``.
        target: ``(N,)``.
        smoothing: total probability of the other V - 1 tokens, as in fairseq.
    """
    loss, nll = projected(features, table, Smoothed(target, smoothing, padding_idx))
    return loss, nll


def projected(features: Tensor, table: Tensor, loss: RowLosses) -> tuple[Tensor, ...]:
    """Return the sums of a loss over the logits of ``features`` ``(N, C)`` and ``table`` ``(V, C)``."""
    if not torch.is_grad_enabled():  # needs_input_grad is True in a custom function also without gradients
        features, table = features.detach(), table.detach()
    kind = product_type(features)
    with without_autocast(features):
        sums: tuple[Tensor, ...] = _ProjectedLoss.apply(features, table, loss, kind)  # type: ignore[no-untyped-call]
    return sums
