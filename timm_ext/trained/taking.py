"""timm's vision transformers as supernets whose largest network is the trained one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import timm
import torch
import torch.nn.functional as F
from timm.data import create_loader
from torch import Tensor, nn

from nas_core.device import usable_device
from nas_core.errors import ConfigError, DataError, SpaceError
from nas_core.models.image.elastic import IMAGE_ELASTIC
from nas_core.models.image.net import VisionSubnet
from nas_core.precision import tf32
from nas_core.space import Architecture, SearchSpace, get_space, image_space
from nas_core.supernet.elastic.asked import is_made, made
from nas_core.supernet.elastic.attention import FitConfig
from nas_core.supernet.elastic.kinds import kinds_at
from nas_core.supernet.elastic.spaces import FFN, HEADS, WIDTHS, around, depths
from nas_core.supernet.elastic.take_over import check_settings, take_over
from timm_ext.checkpoint import save_checkpoint
from timm_ext.data import ImageSet, open_splits
from timm_ext.model import VisionModel
from timm_ext.trained.reading import Source, read_source, source_of
from timm_ext.trained.weights import architecture_of, arguments_of, state_of

ELASTIC = "elastic_vit"
"""The name under which timm builds supernets that were made of a trained model."""
BATCH = 64
"""Images of a batch of calibration data."""


def space_around(trained: Architecture, attention: Sequence[str] = ()) -> SearchSpace:
    """The space of :mod:`nas_core.supernet.elastic.spaces` around a uniform network: its width from all channels to
    5/8, heads of each layer to a half, hidden units of each to a quarter, and layers to a half.

    Args:
        attention: kinds that each layer may use in place of softmax.
    """
    return image_space(
        f"around-{trained.key}",
        layers=depths(trained.number("layers")),
        embed_dims=around(trained.number("embed_dim"), WIDTHS, multiple=8),
        heads=around(trained.numbers("heads")[0], HEADS),
        ffn_dims=around(trained.numbers("ffn_dim")[0], FFN, multiple=8),
        head_dim=trained.number("head_dim"),
        image_size=trained.number("image_size"),
        patch_size=trained.number("patch_size"),
        attention=kinds_at(("softmax", *attention), ("image",))[0],
        relative_clip=0,
    )


def _space_of(given: str | Path | SearchSpace, trained: Architecture, attention: Sequence[str]) -> SearchSpace:
    """The space of a take-over.

    Raises:
        SpaceError: its largest network is not the trained one. ConfigError: kinds of attention beside a space's own.
    """
    if isinstance(given, str) and is_made(given):
        return made(given, lambda: space_around(trained, attention))
    space = given if isinstance(given, SearchSpace) else get_space(str(given))
    if set(attention) - {"softmax"}:
        raise ConfigError("kinds of attention beside a space of your own; name them in the space")
    largest = space.largest()
    for gene in sorted({*trained, *largest}):
        absent = "softmax" if gene == "attention" else None
        ours, theirs = trained.get(gene, absent), largest.get(gene, absent)
        if _each(theirs) != _each(ours):
            raise SpaceError(
                f"the largest network of space {space.name!r} has {gene} {theirs}, the trained one {ours}; a space of a"
                " take-over must contain the trained network as its largest"
            )
    return space


def _each(gene: Any) -> Any:
    """A gene's value; one that all layers share, once."""
    return gene[0] if isinstance(gene, tuple) and len(set(gene)) == 1 else gene


class TrainedViT:
    """A vision transformer of timm as :class:`nas_core.supernet.elastic.take_over.Trained`.

    Args:
        source: the trained model.
        space: a search space whose largest network is the model's, its name or file, ``auto``, or ``attention`` for the
            kinds of attention of that alone.
        attention: with ``auto``, kinds that each layer may use in place of softmax.
        data: images for calibration, as ``timm_ext.train --data`` takes them; default: what the checkpoint was
            trained on, if it says so.

    Raises:
        SpaceError: the space does not contain the trained network as its largest.
    """

    form = IMAGE_ELASTIC

    def __init__(
        self,
        source: Source,
        space: str | Path | SearchSpace = "auto",
        attention: Sequence[str] = (),
        data: str | None = None,
        device: str = "cpu",
    ) -> None:
        self.source, self.data, self.device = source, data or source.data, usable_device(device)
        model: Any = source.model.to(self.device).eval()
        self.space = _space_of(space, architecture_of(model), attention)
        self.arguments = {**arguments_of(model), "prepared": dict(source.prepared)}
        self.supernet = VisionModel(self.space, **self.arguments).to(self.device).eval()
        self.net = self.supernet.net
        self.net.load_state_dict(state_of(model, self.space))

    def difference(self, net: nn.Module) -> float:
        """Between logits, or pooled features, of two random images."""
        config = self.net.config
        height, width = config.image_size or (0, 0)
        images = torch.randn(2, config.channels, height, width, generator=torch.Generator().manual_seed(0))
        images, training = images.to(self.device), net.training
        net.eval()
        with torch.no_grad(), tf32(False):
            expected = self.source.model.float()(images)
            got = net(net.select(self.space.largest()), images)  # type: ignore[operator]
        net.train(training)
        return float((got - expected).abs().max() / expected.abs().max().clamp(min=1e-30))

    def calibration(self, count: int) -> list[tuple[Tensor, Tensor]]:
        """Batches of 64 training images, drawn at random but always the same, prepared as for evaluation.

        Raises:
            DataError: no data, or of other classes. ConfigError: the model has no classifier.
        """
        if not self.net.config.classes:
            raise ConfigError(f"{self.source.where} has no classifier, so no loss to calibrate by; take weight or none")
        if not self.data:
            raise DataError(f"no images to calibrate on; give those that {self.source.where} was trained on as --data")
        images, _ = open_splits(self.data, None, 0, 0)
        if images.source.classes != self.net.config.classes:
            raise DataError(
                f"{self.data} has {images.source.classes} classes, {self.source.where} {self.net.config.classes}; give"
                " the data it was trained on"
            )
        drawn = np.random.default_rng(0).permutation(len(images))[: count * BATCH]
        loader = create_loader(
            ImageSet(images.source, images.indices[np.sort(drawn)[np.random.default_rng(1).permutation(len(drawn))]]),
            input_size=(self.net.config.channels, *(self.net.config.image_size or ())),
            batch_size=BATCH,
            num_workers=0,
            use_prefetcher=False,
            persistent_workers=False,
            **self.source.prepared,
        )
        return [(one.to(self.device), labels.to(self.device)) for one, labels in loader]

    def loss(self, net: Any, subnet: VisionSubnet, batch: tuple[Tensor, Tensor]) -> Tensor:
        """Cross-entropy."""
        images, labels = batch
        return F.cross_entropy(net(subnet, images), labels)

    def with_experts(self, mos: str) -> nn.Module:
        """The network of the same space and order of layers, with experts."""
        order = self.net.config.layer_order
        self.supernet = VisionModel(self.space, **self.arguments, layer_order=order, mos=mos).to(self.device).eval()
        return self.supernet.net

    def save(self, path: Path, net: nn.Module) -> None:
        """Write it as ``timm_ext.train`` writes supernets."""
        assert net is self.supernet.net, "the network that was made last"
        origin = {"arch": self.source.name}
        save_checkpoint(path, self.supernet, arch=ELASTIC, epoch=0, trained=origin)


def open_trained(
    checkpoint: Path, *, data: str | None, space: str, attention: Sequence[str], calibrate: int, device: str
) -> TrainedViT:
    """A checkpoint of timm for ``nas-ext elastic``.

    Raises:
        NasExtError: it cannot be taken over, the space does not fit, or there is no data to calibrate on.
    """
    trained = TrainedViT(read_source(checkpoint), space, attention, data, device)
    if calibrate:
        trained.calibration(1)
    return trained


def elastic(
    model: str | Path | nn.Module,
    *,
    pretrained: bool = False,
    space: str | Path | SearchSpace = "auto",
    attention: Sequence[str] = (),
    importance_by: str = "weight",
    data: str | Path | None = None,
    calibrate: int = 0,
    fit_steps: int = FitConfig().steps,
    mos: str = "none",
    out: str | Path | None = None,
    device: str = "cpu",
    **arguments: Any,
) -> VisionModel:
    """A supernet whose largest network is a vision transformer of timm, in evaluation mode.

    Args:
        model: a name that timm builds, a model, or a file: a checkpoint of timm's trainer, or weights.
        pretrained: for a name, load the weights that timm publishes.
        space: a search space whose largest network is the model's, its name or file; ``auto`` makes one around it, see
            :func:`space_around`, ``auto:layers,ffn_dim`` one of these of its genes, ``attention`` of its kinds of
            attention alone.
        attention: with ``auto``, kinds that each layer may use in place of softmax, such as ``linear``.
        importance_by: what heads, hidden units and channels are sorted by, so that smaller networks keep what matters:
            ``activation``, ``weight``, ``gradient`` or ``none``.
        data: images to calibrate on, as ``timm_ext.train --data`` takes them.
        calibrate: batches of 64 images of it on which importance, and what each layer's absence costs, are measured,
            and other kinds of attention fitted.
        fit_steps: updates by which each other kind of attention is fitted; 0: it begins as a copy of softmax.
        mos: experts of the feed-forward layers: none, layer, neuron, ..
        out: a file to write the supernet to, which must not exist.
        arguments: for a name, what else timm builds it with (``num_classes``, ``img_size``, ..).

    Raises:
        CheckpointError: the model has no elastic form; the message says why. SpaceError: the space does not contain it
            as its largest network. NasExtError: other wrong input.
    """
    check_settings(importance_by, calibrate, fit_steps if attention else 0)
    if isinstance(model, nn.Module):
        source = source_of(model)
    elif isinstance(model, str) and timm.is_model(model):
        with torch.device("meta"):
            source_of(timm.create_model(model, **arguments), model)
        source = source_of(timm.create_model(model, pretrained=pretrained, **arguments), model)
    else:
        source = read_source(Path(model))
    trained = TrainedViT(source, space, attention, None if data is None else str(data), device)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "supernet.pt" if out is None else Path(out)
        take_over(trained, path, importance_by=importance_by, calibrate=calibrate, mos=mos, fit_steps=fit_steps)
    return trained.supernet
