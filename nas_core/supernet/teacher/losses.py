"""Distillation loss on probabilities.

Shapes: V classes or words.
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


def _exact(x: Tensor) -> Tensor:
    return x.to(torch.promote_types(x.dtype, torch.float32))
