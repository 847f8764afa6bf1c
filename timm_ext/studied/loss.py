"""The loss of training, as studies differentiate it, and what it is computed on.

Shapes: B batch.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import torch
import torch.nn.functional as F
from torch import Tensor

from nas_core.precision import computing_in
from nas_core.space import Architecture
from timm_ext.model import VisionModel


def training_loss(
    model: VisionModel,
    architecture: Architecture,
    batch: tuple[Tensor, Tensor],
    device: torch.device,
    precision: str,
    smoothing: float,
) -> Tensor:
    """The mean cross-entropy of images (B, 3, height, width) with labels (B,), in nats, with its gradient.

    The model is in evaluation mode: nothing is dropped, so that the loss repeats itself.
    """
    images, labels = (tensor.to(device, non_blocking=True) for tensor in batch)
    with torch.enable_grad(), computing_in(precision, device):
        logits = model.net(model.net.select(architecture), images)
        return F.cross_entropy(logits.float(), labels, label_smoothing=smoothing)


def digest(batches: Iterable[tuple[Tensor, Tensor]]) -> str:
    """A digest of all labels, and of the first batch's images: whether two networks are evaluated on the same."""
    found = hashlib.sha256()
    for index, (images, labels) in enumerate(batches):
        if not index:
            found.update(images.cpu().contiguous().numpy().tobytes())
        found.update(labels.cpu().to(torch.int64).numpy().tobytes())
    return found.hexdigest()[:16]
