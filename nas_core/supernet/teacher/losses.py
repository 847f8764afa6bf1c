"""Distillation losses on probabilities and on hidden states.

Shapes: N rows (tokens, images), V classes or words, C channels.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from nas_core.checks import Range
from nas_core.layers.torch_modes import without_autocast

DISTILLATION_RANGES = {
    "distill_weight": Range(0, 1),
    "distill_temperature": Range(0, exclude=(0,)),
}


def distillation_loss(
    student_logits: Tensor, teacher_logits: Tensor, temperature: float = 1.0, reduction: str = "mean"
) -> Tensor:
    """Return ``KL(teacher || student) * T^2`` at temperature T (Hinton et al. 2015, section 2), in float32.

    Args:
        student_logits: ``(..., V)``
        teacher_logits: ``(..., V)``, used without gradient.
        reduction: ``mean`` over rows, or ``none``.
    """
    with without_autocast(student_logits):
        student = F.log_softmax(_exact(student_logits) / temperature, -1)
        teacher = F.log_softmax(_exact(teacher_logits.detach()) / temperature, -1)
        rows = F.kl_div(student, teacher.to(student.dtype), reduction="none", log_target=True).sum(-1)
        rows = rows * temperature**2
        return rows if reduction == "none" else rows.mean()


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
        student_norm = F.layer_norm(_exact(student[..., :shared]), (shared,))
        teacher_norm = F.layer_norm(_exact(teacher[..., :shared].detach()), (shared,))
        rows = (student_norm - teacher_norm.to(student_norm.dtype)).square().mean(-1)
        if mask is None:
            return rows.mean()
        return (rows * mask).sum() / mask.sum().clamp(min=1)


def _exact(x: Tensor) -> Tensor:
    return x.to(torch.promote_types(x.dtype, torch.float32))
