"""Loss and accuracy of subnets on images."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import torch
import torch.nn.functional as F
from timm.utils import accuracy
from torch import Tensor

from nas_core.precision import computing_in
from nas_core.space import Architecture
from timm_ext.model import VisionModel

Batches = Iterable[tuple[Tensor, Tensor]]
Results = dict[str, dict[str, float]]


@torch.no_grad()
def evaluate(
    model: VisionModel,
    batches: Batches,
    architectures: Mapping[str, Architecture],
    device: torch.device,
    precision: str = "fp32",
    after_batch: Callable[[int, Results], None] | None = None,
    sums: Callable[[Sequence[float]], Sequence[float]] = list,
) -> Results:
    """Return ``loss`` (cross-entropy in nats) and ``top1`` (percent) of each architecture.

    Args:
        architectures: name -> architecture.
        after_batch: callback with the number of evaluated batches and the results so far.
        sums: function that sums numbers over all workers.
    """
    training = model.training
    model.eval()
    # A static network runs as a whole, so that it runs compiled if it is.
    subnets = (
        {name: model.net.select(architecture) for name, architecture in architectures.items()}
        if model.is_supernet
        else dict.fromkeys(architectures)
    )
    waiting: list[Tensor] = []
    counts: list[int] = []
    totals, read = [0.0] * (2 * len(subnets)), 0

    def read_device() -> None:
        nonlocal read
        for position, value in enumerate(torch.stack(waiting).tolist() if waiting else ()):
            batch, metric = divmod(position, len(totals))
            totals[metric] += value * counts[read + batch] if metric % 2 else value
        waiting.clear()
        read = len(counts)

    for index, (images, labels) in enumerate(batches, start=1):
        images, labels = images.to(device, non_blocking=True), labels.to(device, non_blocking=True)
        for subnet in subnets.values():
            with computing_in(precision, device):
                logits = model(images) if subnet is None else model.net(subnet, images)
            logits = logits.float()
            waiting += [F.cross_entropy(logits, labels, reduction="sum"), accuracy(logits, labels, topk=(1,))[0]]
        counts.append(len(labels))
        if after_batch is not None:
            read_device()
            after_batch(index, _means(totals, sum(counts), subnets))
    read_device()
    model.train(training)
    *totals, count = sums([*totals, float(sum(counts))])
    return _means(totals, count, subnets) if count else {}


def _means(totals: Sequence[float], count: float, names: Iterable[str]) -> Results:
    means = [total / count for total in totals]
    return {name: {"loss": means[2 * index], "top1": means[2 * index + 1]} for index, name in enumerate(names)}
