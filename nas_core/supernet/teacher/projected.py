"""Label-smoothed and distillation loss fused with the output projection.

Rows are processed in chunks, so that the student's logits of the whole batch are never in memory.

Shapes: N rows (tokens), V words, C channels.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from nas_core.layers.smoothed_loss import Smoothed, projected, row_chunks
from nas_core.layers.torch_modes import without_autocast


class Probabilities(NamedTuple):
    """Probabilities of all words by a teacher, at the temperature of the loss."""

    probabilities: Tensor
    """``(N, V)``"""
    negative_entropy: Tensor
    """``(N,)``, sum of p log p."""


class DistilledSums(NamedTuple):
    """Sums over rows without padding. Only ``loss`` has a gradient."""

    loss: Tensor
    """``(1 - w) * smoothed + w * distilled``."""
    smoothed: Tensor
    """Label-smoothed cross entropy."""
    nll: Tensor
    """Negative log-likelihood."""
    distilled: Tensor
    """``KL(teacher || student) * T^2``."""


def probabilities_of(logits: Tensor, temperature: float = 1.0) -> Probabilities:
    """Return the float32 probabilities of logits ``(N, V)``."""
    exact = torch.promote_types(logits.dtype, torch.float32)
    probabilities = torch.empty_like(logits, dtype=exact)
    entropy = logits.new_empty(len(logits), dtype=exact)
    with torch.no_grad(), without_autocast(logits):
        for rows in row_chunks(len(logits), logits.t()):
            probabilities[rows], entropy[rows] = _softmax(logits[rows].to(exact), temperature)
    return Probabilities(probabilities, entropy)


def smoothed_loss(logits: Tensor, target: Tensor, smoothing: float, padding_idx: int) -> tuple[Tensor, Tensor]:
    """Compute :func:`nas_core.layers.smoothed_loss.projected_smoothed_loss` from logits ``(N, V)``."""
    with without_autocast(logits):
        log_q = F.log_softmax(logits.to(torch.promote_types(logits.dtype, torch.float32)), -1)
        keep = target.ne(padding_idx)
        off_target = smoothing / (logits.shape[-1] - 1)
        nll = -(log_q.gather(1, target[:, None])[:, 0] * keep).sum()
        loss = (1.0 - smoothing - off_target) * nll
        if smoothing:
            loss = loss - off_target * (log_q.sum(-1) * keep).sum()
    return loss, nll.detach()


def distilled_loss(
    logits: Tensor,
    target: Tensor,
    teacher: Probabilities,
    *,
    weight: float,
    temperature: float = 1.0,
    smoothing: float = 0.0,
    padding_idx: int,
) -> DistilledSums:
    """Compute :func:`projected_distilled_loss` from logits ``(N, V)``."""
    with without_autocast(logits):
        logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
        target_loss, nll = smoothed_loss(logits, target, smoothing, padding_idx)
        keep = target.ne(padding_idx)
        cross = torch.linalg.vecdot(teacher.probabilities, F.log_softmax(logits / temperature, -1))
        rows = (teacher.negative_entropy - cross) * temperature**2
        distilled = (rows * keep).sum()
        loss = (1 - weight) * target_loss + weight * distilled
    return DistilledSums(loss, target_loss.detach(), nll, distilled.detach())


def _softmax(logits: Tensor, temperature: float) -> tuple[Tensor, Tensor]:
    if temperature != 1:
        logits = logits / temperature
    shifted = logits - logits.amax(1, keepdim=True)
    p = shifted.exp()
    total = p.sum(1, keepdim=True)
    p.div_(total)
    return p, torch.linalg.vecdot(p, shifted) - total[:, 0].log()


def projected_distilled_loss(
    features: Tensor,
    table: Tensor,
    target: Tensor,
    teacher: Probabilities,
    *,
    weight: float,
    temperature: float = 1.0,
    smoothing: float = 0.0,
    padding_idx: int,
) -> DistilledSums:
    """Return ``1 - weight`` times the label-smoothed loss plus ``weight`` times the distillation loss.

    For dtypes, see :func:`nas_core.layers.smoothed_loss.projected_smoothed_loss`.

    Args:
        features: ``(N, C)``
        table: output embeddings ``(V, C)``.
        target: ``(N,)``
        teacher: teacher output for each row, at the same temperature.
    """
    losses = _Distilled(Smoothed(target, smoothing, padding_idx), teacher, weight, temperature)
    return DistilledSums(*projected(features, table, losses))


class _Distilled(NamedTuple):
    smoothed: Smoothed
    teacher: Probabilities
    weight: float
    temperature: float
    sums: int = 4

    @property
    def steepest(self) -> float:
        # 1 - w from a difference of distributions, w * T from one distribution
        return max(1.0, 1 - self.weight + self.weight * self.temperature)

    def __call__(self, rows: slice, logits: Tensor, gradient: bool) -> tuple[tuple[Tensor, ...], Tensor | None]:
        target_loss, nll, norm = self.smoothed.losses(rows, logits)
        soft, soft_norm, share = logits, norm, self.weight
        if self.temperature != 1:
            soft, share = logits / self.temperature, 1.0
            soft_norm = soft.logsumexp(1, keepdim=True)
        p, negative_entropy = (values[rows] for values in self.teacher)
        row_kl = negative_entropy - torch.linalg.vecdot(p, soft) + soft_norm[:, 0]
        keep = self.smoothed.target[rows].ne(self.smoothed.padding_idx)
        distilled = (row_kl * self.temperature**2 * keep).sum()
        target_loss, nll = target_loss.sum(), nll.sum()
        sums = (1 - self.weight) * target_loss + self.weight * distilled, target_loss, nll, distilled
        if not gradient:
            return sums, None
        grad = (soft - soft_norm).exp_().sub_(p, alpha=share)
        target_weight = 1 - self.weight
        if self.temperature != 1:
            grad.mul_(self.weight * self.temperature).add_(logits.sub_(norm).exp_(), alpha=target_weight)
        return sums, self.smoothed.subtract_target(rows, grad, target_weight)
