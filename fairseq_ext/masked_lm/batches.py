"""Batches of fairseq's tasks as plain tensors, so that evaluating them reads nothing back from a device.

Shapes: B batch, T length, N masked tokens.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from nas_core.models.masked_lm import MaskedLMNet, Subnet

__all__ = ["batch_loss", "plain_batch"]


def plain_batch(batch: dict[str, Any], padding: int, device: str | torch.device) -> dict[str, Any]:
    """A batch of ``masked_lm`` or ``sentence_prediction``: ``tokens`` (B, T), ``target``, and ``count`` of what is
    predicted. Of masked tokens ``target`` is (N,), and ``at`` (N,) their places in B * T."""
    tokens, target = batch["net_input"]["src_tokens"], batch["target"]
    made = {"tokens": tokens}
    if target.shape == tokens.shape:
        made["at"] = target.flatten().ne(padding).nonzero().flatten()
        target = target.flatten()[made["at"]]
    elif not target.is_floating_point():
        target = target.flatten()
    made["target"] = target
    return {name: tensor.to(device) for name, tensor in made.items()} | {"count": target.shape[0]}


def batch_loss(net: MaskedLMNet, subnet: Subnet, batch: Mapping[str, Any], head: str | None) -> tuple[Tensor, Tensor]:
    """The sum of a batch's losses in nats, and how many tokens or classes are predicted right.

    Args:
        batch: of :func:`plain_batch`.
        head: the classification head that is evaluated; None: what predicts tokens.
    """
    features = net.encode(subnet, batch["tokens"])
    if head is None:
        logits = net.predict(subnet, features.flatten(0, 1).index_select(0, batch["at"]))
    else:
        logits = net.classify(subnet, features, head)
    logits, target = logits.float(), batch["target"]
    if target.is_floating_point():
        return F.mse_loss(logits.flatten(), target.flatten(), reduction="sum"), target.new_zeros(())
    return F.cross_entropy(logits, target, reduction="sum"), (logits.argmax(-1) == target).float().sum()
