"""Definitions that fast functions are compared with."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from nas_core.layers.attention.cosformer.common import EPS, sequence_scale, working_dtype
from nas_core.supernet.teacher.losses import distillation_loss
from nas_core.supernet.teacher.projected import DistilledSums, Probabilities


def naive_attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, causal: bool = False) -> Tensor:
    scores = q.float() @ k.float().transpose(-1, -2) * q.shape[-1] ** -0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    if causal:
        later = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).triu(1)
        scores = scores.masked_fill(later, float("-inf"))
    attended: Tensor = scores.softmax(-1) @ v.float()
    return attended.to(q.dtype)


def cosformer_naive(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    max_length: int | None,
    causal: bool = False,
    key_mask: Tensor | None = None,
    query_positions: Tensor | None = None,
    key_positions: Tensor | None = None,
) -> Tensor:
    """Linear attention over all pairs of positions (cosFormer, equation 9)."""
    dtype = working_dtype(q)
    i = torch.arange(q.shape[2], device=q.device) if query_positions is None else query_positions
    j = torch.arange(k.shape[2], device=k.device) if key_positions is None else key_positions
    scale: int | Tensor | None = max_length
    if scale is None:
        i, scale = sequence_scale(k, key_mask)
        j = i
    distances = (i[..., :, None] - j[..., None, :]).double()
    longest = scale.double()[..., None] if isinstance(scale, Tensor) else scale
    cosines = torch.cos(math.pi / 2 / longest * distances).to(dtype)
    weights = torch.relu(q.to(dtype)) @ torch.relu(k.to(dtype)).mT
    weights = weights * (cosines[:, None] if cosines.ndim == 3 else cosines)
    if causal:
        weights = weights.tril()
    if key_mask is not None:
        weights = weights * key_mask[:, None, None]
    return (weights @ v.to(dtype) / weights.sum(-1, keepdim=True).clamp(min=EPS)).to(q.dtype)


def naive_mix(experts: Tensor, coefficients: Tensor, out_features: int, in_features: int) -> Tensor:
    used = experts[:, :out_features, :in_features].float()
    if coefficients.dim() == 1:
        return torch.einsum("m,moi->oi", coefficients.float(), used)
    return sum((torch.diag(coefficients[:, i].float()) @ used[i] for i in range(len(used))), torch.zeros_like(used[0]))


def naive_smoothed_loss(
    features: Tensor, table: Tensor, target: Tensor, smoothing: float, padding_idx: int
) -> tuple[Tensor, Tensor]:
    log_probs = F.log_softmax(features.float() @ table.float().t(), dim=-1)
    nll = -log_probs.gather(1, target.unsqueeze(1))[:, 0]
    smooth = -log_probs.sum(-1)
    keep = target.ne(padding_idx)
    spread = smoothing / (table.shape[0] - 1)
    loss = (1.0 - smoothing - spread) * nll + spread * smooth
    return (loss * keep).sum(), (nll * keep).sum()


def naive_distillation_loss(student_logits: Tensor, teacher_logits: Tensor, temperature: float = 1.0) -> Tensor:
    p = (teacher_logits.float() / temperature).softmax(-1)
    q = (student_logits.float() / temperature).softmax(-1)
    return ((p * (p.log() - q.log())).sum(-1) * temperature**2).mean()


def naive_distilled_loss(
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
    target_loss, nll = naive_smoothed_loss(features, table, target, smoothing, padding_idx)
    logits = features.float() @ table.float().t()
    rows = distillation_loss(logits, teacher.probabilities.log() * temperature, temperature, "none")
    distilled = (rows * target.ne(padding_idx)).sum()
    return DistilledSums((1 - weight) * target_loss + weight * distilled, target_loss, nll, distilled)
