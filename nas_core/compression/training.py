"""Distillation of compressed networks from the trained network."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from nas_core.compression.host import Compressible
from nas_core.supernet.teacher.losses import distillation_loss

_LR_CHANNELS = 0.2
"""Product of default learning rate and number of channels."""


def evaluate(trained: Compressible, model: nn.Module, batches: Sequence[Any]) -> dict[str, float]:
    """Return ``loss`` (cross-entropy in nats, or a distance) and the host's metrics (percent) over batches."""
    training = model.training
    model.eval()
    total = torch.zeros(3, dtype=torch.float64)
    with torch.inference_mode():
        if (metrics := trained.agreement(model, batches)) is not None:
            model.train(training)
            return metrics
        for batch in batches:
            logits, targets = trained.logits(model, batch)
            loss = F.cross_entropy(logits.float(), targets, reduction="sum")
            right = (logits.argmax(-1) == targets).sum()
            total += torch.tensor([float(loss), float(right), len(targets)], dtype=torch.float64)
    model.train(training)
    loss_sum, right_sum, count = total.tolist()
    return {"loss": loss_sum / count, trained.metric: 100 * right_sum / count}


def lr_of(trained: Compressible, config: Any) -> float:
    """Return the highest learning rate; default: inversely proportional to the number of channels."""
    largest = trained.space.largest()
    channels = [largest.number(gene) for gene in largest.to_dict() if gene.endswith("embed_dim")]
    return float(config.lr or _LR_CHANNELS / max(channels, default=400))


def distill(trained: Compressible, model: Any, teacher: Any, config: Any) -> int:
    """Train a static network for ``config.updates`` updates, or until a gradient is not finite.

    The learning rate rises during the first tenth, and decays to 0 (cosine).

    Args:
        teacher: static network with the trained weights.
        config: :class:`~nas_core.compression.CompressConfig`.

    Returns:
        Number of updates.
    """
    highest = lr_of(trained, config)
    optimizer = torch.optim.AdamW(model.parameters(), highest, weight_decay=config.weight_decay)
    batches = trained.training_batches(config.batch_size, config.seed)
    model.train()
    for index in range(config.updates):
        rate = min((index + 1) / (0.1 * config.updates + 1), 1.0)
        rate *= 0.5 + 0.5 * math.cos(math.pi * index / config.updates)
        for group in optimizer.param_groups:
            group["lr"] = highest * rate
        optimizer.zero_grad()
        loss = _loss(trained, model, teacher, config, next(batches))
        loss.backward()  # type: ignore[no-untyped-call]
        norm = nn.utils.clip_grad_norm_(model.parameters(), config.clip_norm)
        if not math.isfinite(float(norm)):
            return index
        optimizer.step()
    return int(config.updates)


class LastLinear(TorchFunctionMode):
    """Recorder of the input of the last linear layer, which is the output layer."""

    features: Tensor

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is F.linear:
            self.features = args[0] if args else kwargs["input"]
        return func(*args, **(kwargs or {}))


def _loss(trained: Compressible, model: Any, teacher: Any, config: Any, batch: Any) -> Tensor:
    if (distance := trained.distance(model, teacher, batch)) is not None:
        return distance
    with torch.no_grad(), LastLinear() as target:
        soft, _ = trained.logits(teacher, batch)
    with LastLinear() as last:
        logits, targets = trained.logits(model, batch)
    weight, features = config.distill_weight, last.features
    loss: Tensor = (1 - weight) * F.cross_entropy(logits, targets) + weight * distillation_loss(logits, soft)
    target_features = target.features[..., : features.shape[-1]]
    similarity = F.cosine_similarity(features, target_features, dim=-1)
    masks = trained.token_masks(batch)
    if masks and similarity.ndim == 2:
        similarity = similarity[[*masks.values()][-1]]
    loss += config.distill_features * (1 - similarity.mean())
    return loss
