"""Output projection and label-smoothed cross entropy in one operation, without a logits-sized gradient chain.

At translation sizes on a CPU the output layer costs as much as the rest of a small network, and most of that is memory
traffic on tensors of (tokens x vocabulary). Rows are processed in chunks that stay in cache, and the gradient, known in
closed form, is computed in the same pass.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

__all__ = ["naive_smoothed_loss", "projected_smoothed_loss"]

_CHUNK_ELEMENTS = 1 << 21
"""Logits held at a time on a CPU, about what its cache holds; an accelerator takes 64 times as many in one launch."""


class _ProjectedLoss(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, features: Tensor, table: Tensor, target: Tensor, smoothing: float, padding_idx: int
    ) -> tuple[Tensor, Tensor]:
        vocab = table.shape[0]
        spread = smoothing / (vocab - 1)
        on_target = 1.0 - smoothing - spread
        loss = features.new_zeros((), dtype=torch.float)
        nll = torch.zeros_like(loss)
        needs_grad = ctx.needs_input_grad[0] or ctx.needs_input_grad[1]
        grad_features = torch.empty_like(features) if needs_grad else None
        grad_table = torch.zeros_like(table, memory_format=torch.contiguous_format) if needs_grad else None
        elements = _CHUNK_ELEMENTS * (1 if features.device.type == "cpu" else 64)
        chunk = max(1, elements // vocab)
        for start in range(0, len(features), chunk):
            rows = slice(start, start + chunk)
            logits = (features[rows] @ table.t()).float()
            wanted = target[rows].unsqueeze(1)
            keep = wanted.ne(padding_idx)
            at_target, total = logits.gather(1, wanted), logits.sum(1, keepdim=True)
            norm = logits.logsumexp(1, keepdim=True)
            row_nll = norm - at_target
            row_loss = on_target * row_nll + spread * (vocab * norm - total)
            loss += (row_loss * keep).sum()
            nll += (row_nll * keep).sum()
            if grad_features is not None and grad_table is not None:
                grad = logits.sub_(norm).exp_().sub_(spread)
                grad.scatter_add_(1, wanted, torch.full_like(at_target, -on_target))
                grad = grad.mul_(keep).to(features.dtype)
                torch.mm(grad, table, out=grad_features[rows])
                grad_table.addmm_(grad.t(), features[rows])
        if grad_features is not None:
            ctx.save_for_backward(grad_features, grad_table)
        ctx.mark_non_differentiable(nll)
        return loss, nll

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, None, None, None]:
        grad_features, grad_table = ctx.saved_tensors
        scale = grads[0]
        return grad_features * scale.to(grad_features), grad_table * scale.to(grad_table), None, None, None


def projected_smoothed_loss(
    features: Tensor, table: Tensor, target: Tensor, smoothing: float, padding_idx: int
) -> tuple[Tensor, Tensor]:
    """Label-smoothed loss and negative log-likelihood, each summed over the tokens that are not padding.

    ``features`` (N, C), ``table`` (V, C), ``target`` (N,). The loss is fairseq's: ``smoothing`` spread over the other
    V - 1 words. Only the loss has a gradient.
    """
    if not torch.is_grad_enabled():  # a custom function is told what requires gradients even where none are recorded
        features, table = features.detach(), table.detach()
    loss, nll = _ProjectedLoss.apply(features, table, target, smoothing, padding_idx)  # type: ignore[no-untyped-call]
    return loss, nll


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
