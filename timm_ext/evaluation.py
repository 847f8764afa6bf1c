"""Loss and accuracy of subnets on a set of images."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import torch
import torch.nn.functional as F
from timm.utils import accuracy
from torch import Tensor

from nas_core.space import Architecture
from timm_ext.model import VisionModel

__all__ = ["evaluate"]

Batches = Iterable[tuple[Tensor, Tensor]]


@torch.no_grad()
def evaluate(
    model: VisionModel,
    batches: Batches,
    architectures: Mapping[str, Architecture],
    device: torch.device,
    half: bool = False,
    after_batch: Callable[[int, dict[str, dict[str, float]]], None] | None = None,
) -> dict[str, dict[str, float]]:
    """``loss`` (cross-entropy, nats) and ``top1`` (percent) of each architecture, by name; images are read once, and
    experts mixed once. ``after_batch`` gets the number of batches seen and the results on them."""
    training = model.training
    model.eval()
    subnets = {name: model.net.select(architecture) for name, architecture in architectures.items()}
    totals = {name: {"loss": 0.0, "top1": 0.0} for name in architectures}
    count = 0
    results: dict[str, dict[str, float]] = {}
    for index, (images, labels) in enumerate(batches, start=1):
        images, labels = images.to(device), labels.to(device)
        for name, subnet in subnets.items():
            with torch.autocast(device.type, torch.bfloat16, enabled=half):
                logits = model.net(subnet, images)
            logits = logits.float()
            totals[name]["loss"] += float(F.cross_entropy(logits, labels, reduction="sum"))
            totals[name]["top1"] += float(accuracy(logits, labels, topk=(1,))[0]) * len(labels)
        count += len(labels)
        results = {name: {key: total / count for key, total in sums.items()} for name, sums in totals.items()}
        if after_batch is not None:
            after_batch(index, results)
    model.train(training)
    return results
