"""Distillation losses on probabilities and on hidden states.

Shapes: N rows (tokens, images), V classes or words, K stored words, C channels.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from nas_core.checks import Range
from nas_core.layers.torch_modes import without_autocast


class TopK(NamedTuple):
    """Most probable words of a teacher. Other words have the remaining probability."""

    probabilities: Tensor
    """``(..., K)``, at the temperature of the loss."""
    indices: Tensor
    """``(..., K)`` indices of the words."""


DISTILLATION_RANGES = {
    "distill_weight": Range(0, 1),
    "distill_temperature": Range(0, without=(0,)),
    "distill_hidden": Range(0),
    "distill_attention": Range(0),
    "teacher_top_k": Range(0),
}


def distillation_loss(
    student_logits: Tensor, teacher_logits: Tensor, temperature: float = 1.0, reduction: str = "mean"
) -> Tensor:
    """Return ``KL(teacher || student) * T^2`` at temperature T (Hinton et al. 2015, section 2), in float32.

    Args:
        student_logits: ``(..., V)``
        teacher_logits: ``(..., V)``, used without gradient.
        reduction: ``mean`` or ``sum`` over rows, or ``none``.
    """
    with without_autocast(student_logits):
        student = F.log_softmax(_exact(student_logits) / temperature, -1)
        teacher = F.log_softmax(_exact(teacher_logits.detach()) / temperature, -1)
        rows = F.kl_div(student, teacher.to(student.dtype), reduction="none", log_target=True).sum(-1)
        return _reduced(rows * temperature**2, reduction)


def naive_distillation_loss(student_logits: Tensor, teacher_logits: Tensor, temperature: float = 1.0) -> Tensor:
    p = (teacher_logits.float() / temperature).softmax(-1)
    q = (student_logits.float() / temperature).softmax(-1)
    return ((p * (p.log() - q.log())).sum(-1) * temperature**2).mean()


def top_k(teacher_logits: Tensor, k: int, temperature: float = 1.0) -> TopK:
    """Return the ``k`` most probable words of each row of ``teacher_logits`` ``(..., V)`` in descending order."""
    logits = _exact(teacher_logits.detach()) / temperature
    values, indices = logits.topk(k, -1)
    return TopK((values - logits.logsumexp(-1, keepdim=True)).exp(), indices)


def top_k_distillation_loss(
    student_logits: Tensor, teacher: TopK, temperature: float = 1.0, reduction: str = "mean"
) -> Tensor:
    """Return the distillation loss over K + 1 events: each of the teacher's K words, and any other word.

    With K = V it equals :func:`distillation_loss`.

    Args:
        student_logits: ``(..., V)``
        teacher: probabilities at the same temperature.
    """
    with without_autocast(student_logits):
        logits = _exact(student_logits) / temperature
        norm = logits.logsumexp(-1)
        p, p_rest = kept_and_rest(teacher, logits.shape[-1])
        log_q = logits.gather(-1, teacher.indices) - norm[..., None]
        rows = torch.xlogy(p, p).sum(-1) - (p * log_q).sum(-1)
        if p.shape[-1] < logits.shape[-1]:
            masked = logits.scatter(-1, teacher.indices, float("-inf"))
            rows = rows + torch.xlogy(p_rest, p_rest) - p_rest * (masked.logsumexp(-1) - norm)
        return _reduced(rows * temperature**2, reduction)


def naive_top_k_distillation_loss(student_logits: Tensor, teacher: TopK, temperature: float = 1.0) -> Tensor:
    q = (student_logits.float() / temperature).softmax(-1)
    q_top = q.gather(-1, teacher.indices)
    p_top = teacher.probabilities.float()
    events = torch.cat([p_top, 1 - p_top.sum(-1, keepdim=True)], -1).clamp(min=1e-12)
    student = torch.cat([q_top, 1 - q_top.sum(-1, keepdim=True)], -1).clamp(min=1e-12)
    return ((events * (events.log() - student.log())).sum(-1) * temperature**2).mean()


def kept_and_rest(teacher: TopK, vocab: int) -> tuple[Tensor, Tensor]:
    """Return float32 probabilities ``(..., K)`` of the stored words and ``(...)`` of all others, which sum to 1."""
    p = _exact(teacher.probabilities)
    total = p.sum(-1)
    if p.shape[-1] == vocab:
        return p / total[..., None], torch.zeros_like(total)
    over = total.clamp(min=1.0)
    return p / over[..., None], (1 - total).clamp(min=0.0)


def hidden_loss(student: Tensor, teacher: Tensor, mask: Tensor | None = None) -> Tensor:
    """Return the mean squared difference of hidden states in float32, over the first channels that both have.

    Each row of both is scaled to mean 0 and variance 1.

    Args:
        student: ``(..., C)``
        teacher: ``(..., C')``, used without gradient.
        mask: ``(...)``, False at rows to ignore.
    """
    shared = min(student.shape[-1], teacher.shape[-1])
    with without_autocast(student):
        ours = F.layer_norm(_exact(student[..., :shared]), (shared,))
        theirs = F.layer_norm(_exact(teacher[..., :shared].detach()), (shared,))
        rows = (ours - theirs.to(ours.dtype)).square().mean(-1)
        if mask is None:
            return rows.mean()
        return (rows * mask).sum() / mask.sum().clamp(min=1)


def _exact(x: Tensor) -> Tensor:
    return x.to(torch.promote_types(x.dtype, torch.float32))


def _reduced(rows: Tensor, reduction: str) -> Tensor:
    return rows if reduction == "none" else rows.mean() if reduction == "mean" else rows.sum()
