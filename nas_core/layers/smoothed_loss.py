"""Output projection and label-smoothed cross entropy in one operation, without a logits-sized gradient chain.

At translation sizes on a CPU the output layer costs as much as the rest of a small network, and most of that is memory
traffic on tensors of (tokens x vocabulary). Rows are processed in chunks that stay in cache, and the gradient, known in
closed form, is computed in the same pass.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from nas_core.layers.modes import without_autocast

_CHUNK_ELEMENTS = 1 << 21
"""Logits held at a time on a CPU, about what its cache holds; an accelerator takes 64 times as many in one launch."""


_FP16_SCALE = 1024.0
"""By which gradients of logits are larger in float16, whose smallest number is above the probability of a rare word."""


class RowLosses(Protocol):
    """What a loss makes of the logits of some rows."""

    @property
    def sums(self) -> int:
        """The number of sums it gives; the first is the loss, which alone has a gradient."""

    @property
    def steepest(self) -> float:
        """A bound of the size of that gradient by any logit."""

    def __call__(self, rows: slice, logits: Tensor, gradient: bool) -> tuple[tuple[Tensor, ...], Tensor | None]:
        """The sums over the rows, and the gradient (n, V) of the first by the logits (n, V) if it is asked for.

        The logits are float32 or better, and may be overwritten.
        """


class _ProjectedLoss(torch.autograd.Function):
    """The loss, and its gradients in the working type of the sums; products are in the type of ``kind``."""

    @staticmethod
    def forward(ctx: Any, features: Tensor, table: Tensor, each: RowLosses, kind: torch.dtype) -> tuple[Tensor, ...]:
        ctx.types = features.dtype, table.dtype
        needs_grad = ctx.needs_input_grad[0] or ctx.needs_input_grad[1]
        features, table = features.to(kind), table.to(kind)
        sums = tuple(features.new_zeros((), dtype=torch.float) for _ in range(each.sums))
        grads = _Gradients(features, table, each.steepest) if needs_grad else None
        for rows in row_chunks(len(features), table):
            logits = (features[rows] @ table.t()).float()
            values, of_logits = each(rows, logits, needs_grad)
            for total, value in zip(sums, values, strict=True):
                total += value
            if grads is not None and of_logits is not None:
                grads.add(rows, of_logits)
        if grads is not None:
            ctx.save_for_backward(grads.of_features, grads.of_table)
        ctx.mark_non_differentiable(*sums[1:])
        return sums

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        found = [
            (saved * grads[0].to(saved)).to(kind) for saved, kind in zip(ctx.saved_tensors, ctx.types, strict=True)
        ]
        return (*found, None, None)


def row_chunks(rows: int, table: Tensor) -> Iterator[slice]:
    """Rows whose logits are computed at a time with a table (V, C)."""
    elements = _CHUNK_ELEMENTS * (1 if table.device.type == "cpu" else 64)
    chunk = max(1, elements // table.shape[0])
    for start in range(0, rows, chunk):
        yield slice(start, start + chunk)


class Smoothed(NamedTuple):
    """Label-smoothed cross entropy and negative log-likelihood of rows of logits."""

    target: Tensor
    """(N,)"""
    smoothing: float
    padding_idx: int
    sums: int = 2

    @property
    def steepest(self) -> float:
        """The difference of two distributions."""
        return 1.0

    def __call__(self, rows: slice, logits: Tensor, gradient: bool) -> tuple[tuple[Tensor, ...], Tensor | None]:
        """Compute what :class:`RowLosses` says."""
        loss, nll, norm = self.losses(rows, logits)
        sums = loss.sum(), nll.sum()
        return sums, self.less_target(rows, logits.sub_(norm).exp_()) if gradient else None

    def losses(self, rows: slice, logits: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Both losses of each row, 0 at padding, and the logarithm of the sum of its exponentials, each (n, 1)."""
        vocab, wanted = logits.shape[1], self.target[rows].unsqueeze(1)
        spread = self.smoothing / (vocab - 1)
        at_target, total = logits.gather(1, wanted), logits.sum(1, keepdim=True)
        norm = logits.logsumexp(1, keepdim=True)
        nll = norm - at_target
        loss = (1.0 - self.smoothing - spread) * nll + spread * (vocab * norm - total)
        keep = wanted.ne(self.padding_idx)
        return loss * keep, nll * keep, norm

    def less_target(self, rows: slice, p: Tensor, share: float = 1.0) -> Tensor:
        """Probabilities (n, V), which are overwritten, less that share of the smoothed targets; 0 at padding."""
        spread, wanted = self.smoothing / (p.shape[1] - 1), self.target[rows].unsqueeze(1)
        on_target = p.new_full(wanted.shape, -(1.0 - self.smoothing - spread) * share)
        return p.sub_(share * spread).scatter_add_(1, wanted, on_target).mul_(wanted.ne(self.padding_idx))


class _Gradients:
    """Gradients of features and table, filled chunk by chunk; float32 where the products are of halves."""

    def __init__(self, features: Tensor, table: Tensor, steepest: float) -> None:
        self.features, self.table = features, table
        self.scale = _FP16_SCALE / max(1.0, steepest)
        exact = torch.promote_types(features.dtype, torch.float32)
        self.of_features = torch.empty_like(features, dtype=exact)
        self.of_table = torch.zeros_like(table, dtype=exact, memory_format=torch.contiguous_format)

    def add(self, rows: slice, of_logits: Tensor) -> None:
        """Add what the rows of a chunk give, from the gradients of their logits."""
        kind = self.features.dtype
        if kind == self.of_table.dtype:
            grad = of_logits.to(kind)
            torch.mm(grad, self.table, out=self.of_features[rows])
            self.of_table.addmm_(grad.t(), self.features[rows])
            return
        whole = sums_whole(kind, self.features.device)
        scale = self.scale if whole and kind == torch.float16 else 1.0
        grad = (of_logits * scale if scale != 1.0 else of_logits).to(kind)
        product = _whole if whole else torch.mm
        self.of_features[rows] = product(grad, self.table) / scale
        self.of_table.add_(product(grad.t(), self.features[rows]), alpha=1 / scale)


@functools.cache
def sums_whole(kind: torch.dtype, device: torch.device) -> bool:
    """Whether this torch gives products of halves in float32, as they were added up: on CUDA, from 2.8 on."""
    if device.type != "cuda" or not hasattr(torch.ops.aten.mm, "dtype"):
        return False
    tried = torch.ones(16, 16, dtype=kind, device=device)
    try:
        return _whole(tried, tried).dtype == torch.float32
    except RuntimeError:  # a build or device without it
        return False


def _whole(a: Tensor, b: Tensor) -> Tensor:
    product: Tensor = torch.ops.aten.mm.dtype(a, b, torch.float32)
    return product


def product_type(features: Tensor) -> torch.dtype:
    """The type in which the products are computed: that of autocast where it is on, else that of the features."""
    device = features.device.type
    if features.dtype != torch.float64 and torch.is_autocast_enabled(device):
        return torch.get_autocast_dtype(device)
    return features.dtype


def projected_smoothed_loss(
    features: Tensor, table: Tensor, target: Tensor, smoothing: float, padding_idx: int
) -> tuple[Tensor, Tensor]:
    """Label-smoothed loss and negative log-likelihood, each summed over the tokens that are not padding.

    ``features`` (N, C), ``table`` (V, C), ``target`` (N,). The loss is fairseq's: ``smoothing`` spread over the other
    V - 1 words. Only the loss has a gradient. Under autocast the three products are of its type, as a linear layer's
    would be; softmax, loss and the sums of gradients are float32.
    """
    loss, nll = projected(features, table, Smoothed(target, smoothing, padding_idx))
    return loss, nll


def projected(features: Tensor, table: Tensor, each: RowLosses) -> tuple[Tensor, ...]:
    """The sums of a loss over the logits of ``features`` (N, C) by ``table`` (V, C), which are never held together."""
    if not torch.is_grad_enabled():  # a custom function is told what requires gradients even where none are recorded
        features, table = features.detach(), table.detach()
    kind = product_type(features)
    with without_autocast(features):
        sums: tuple[Tensor, ...] = _ProjectedLoss.apply(features, table, each, kind)  # type: ignore[no-untyped-call]
    return sums


def naive_smoothed_loss(
    features: Tensor, table: Tensor, target: Tensor, smoothing: float, padding_idx: int
) -> tuple[Tensor, Tensor]:
    """The same by its definition, in float32: the reference."""
    log_probs = F.log_softmax(features.float() @ table.float().t(), dim=-1)
    nll = -log_probs.gather(1, target.unsqueeze(1))[:, 0]
    smooth = -log_probs.sum(-1)
    keep = target.ne(padding_idx)
    spread = smoothing / (table.shape[0] - 1)
    loss = (1.0 - smoothing - spread) * nll + spread * smooth
    return (loss * keep).sum(), (nll * keep).sum()
