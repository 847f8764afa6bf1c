"""Conversion of timm's trained vision transformers to supernets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any

import numpy as np
import timm
import torch
import torch.nn.functional as F
from timm.data import create_loader
from torch import Tensor, nn

from nas_core.device import usable_device
from nas_core.errors import ConfigError, DataError
from nas_core.layers.torch_modes import evaluating
from nas_core.layers.weights import named_tensors
from nas_core.models.image.elastic import IMAGE_ELASTIC
from nas_core.models.image.net import VisionSubnet
from nas_core.models.static import copy_state
from nas_core.models.workload import OnePassWorkload
from nas_core.precision import tf32
from nas_core.space import Architecture, SearchSpace
from nas_core.space.image import image_space, static_image_space
from nas_core.supernet.elastic.attention import FitConfig
from nas_core.supernet.elastic.conversion import check_settings, convert
from nas_core.supernet.elastic.kinds import kinds_at
from nas_core.supernet.elastic.space_spec import is_auto, space_for
from nas_core.supernet.elastic.spaces import FFN, HEADS, WIDTHS, depths, size_options
from timm_ext.building import make_loader, seed_everything
from timm_ext.checkpoint import save_checkpoint, write_subnet
from timm_ext.data import ImageSet, open_splits
from timm_ext.model import VisionModel
from timm_ext.models import ELASTIC
from timm_ext.options import TrainConfig
from timm_ext.trained.reading import Source, read_source, source_of
from timm_ext.trained.vit import architecture_of, arguments_of, state_of
from timm_ext.workers import Workers

BATCH = 64


def space_around(trained: Architecture, attention: Sequence[str] = ()) -> SearchSpace:
    """Return a search space whose largest network is the trained one.

    Widths go down to 5/8 of the trained network, heads and layers to 1/2, hidden units to 1/4.

    Args:
        attention: kinds of attention to choose from in each layer, in addition to softmax.
    """
    return image_space(
        f"around-{trained.key}",
        layers=depths(trained.number("layers")),
        embed_dims=size_options(trained.number("embed_dim"), WIDTHS, multiple=8),
        heads=size_options(trained.numbers("heads")[0], HEADS),
        ffn_dims=size_options(trained.numbers("ffn_dim")[0], FFN, multiple=8),
        head_dim=trained.number("head_dim"),
        image_size=trained.number("image_size"),
        patch_size=trained.number("patch_size"),
        attention=kinds_at(("softmax", *attention), ("image",))[0],
        relative_clip=0,
    )


class TrainedViT:
    """Trained vision transformer, to be converted to a supernet; for the arguments see :func:`elastic`."""

    form = IMAGE_ELASTIC
    metric = "top1"
    multiples: Mapping[str, int] = MappingProxyType({})

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
        trained, space = architecture_of(model), space if isinstance(space, SearchSpace) else str(space)
        if set(attention) - {"softmax"} and not (isinstance(space, str) and is_auto(space)):
            raise ConfigError(
                f"--attention {', '.join(attention)} needs --space auto, but --space is {space}; add the kinds of"
                " attention to that space"
            )
        self.space = space_for(space, trained, lambda: space_around(trained, attention))
        self.arguments = {**arguments_of(model), "prepared": dict(source.prepared)}
        self.supernet = VisionModel(self.space, **self.arguments).to(self.device).eval()
        self.net = self.supernet.net
        self.net.load_state_dict(state_of(model, self.space))

    def difference(self, net: nn.Module) -> float:
        config = self.net.config
        height, width = config.image_size or (0, 0)
        images = torch.randn(2, config.channels, height, width, generator=torch.Generator().manual_seed(0))
        images = images.to(self.device)
        with evaluating(net), torch.no_grad(), tf32(False):
            expected = self.source.model.float()(images)
            output = net(net.select(self.space.largest()), images)  # type: ignore[operator]
        return float((output - expected).abs().max() / expected.abs().max().clamp(min=1e-30))

    def calibration(self, count: int) -> list[tuple[Tensor, Tensor]]:
        """Return ``count`` batches of 64 training images without augmentation, the same each time."""
        images, _ = self._splits()
        indices = np.random.default_rng(0).permutation(len(images))[: count * BATCH]
        shuffled = np.sort(indices)[np.random.default_rng(1).permutation(len(indices))]
        return self._batches(ImageSet(images.source, images.indices[shuffled]), BATCH)

    def _splits(self) -> tuple[ImageSet, ImageSet]:
        if not self.net.config.classes:
            raise ConfigError(
                f"{self.source.label} has no classifier, so no loss can be computed; give --importance weight or none"
            )
        if not self.data:
            raise DataError(
                f"calibration needs images; give the images that {self.source.label} was trained on as --data"
            )
        splits = open_splits(self.data, None, 0, 0)
        if splits[0].source.classes != self.net.config.classes:
            raise DataError(
                f"{self.data} has {splits[0].source.classes} classes, but {self.source.label} has"
                f" {self.net.config.classes}; give the images that the model was trained on"
            )
        return splits

    def _batches(self, images: ImageSet, batch_size: int) -> list[tuple[Tensor, Tensor]]:
        loader = create_loader(
            images,
            input_size=(self.net.config.channels, *(self.net.config.image_size or ())),
            batch_size=batch_size,
            num_workers=0,
            use_prefetcher=False,
            persistent_workers=False,
            **self.source.prepared,
        )
        return [(batch.to(self.device), labels.to(self.device)) for batch, labels in loader]

    def loss(self, net: Any, subnet: VisionSubnet, batch: tuple[Tensor, Tensor]) -> Tensor:
        images, labels = batch
        return F.cross_entropy(net(subnet, images), labels)

    def save(self, path: Path, net: nn.Module) -> None:
        assert net is self.supernet.net
        save_checkpoint(path, self.supernet, arch=ELASTIC, epoch=0, trained={"arch": self.source.name})

    # -- compression, see nas_core.compression.host.Compressible ------------------------------------------------------

    @property
    def original(self) -> nn.Module:
        return self.source.model

    def static(self, architecture: Architecture) -> VisionModel:
        model = VisionModel(static_image_space(architecture), **self.arguments)
        model.net.load_state_dict(copy_state(named_tensors(self.net.select(architecture, validated=True))))
        return model.to(self.device)

    def logits(self, model: nn.Module, batch: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        return model(batch[0]), batch[1]

    def distance(self, model: nn.Module, teacher: nn.Module, batch: tuple[Tensor, Tensor]) -> None:
        return None

    def agreement(self, model: nn.Module, batches: Sequence[tuple[Tensor, Tensor]]) -> None:
        return None

    def token_masks(self, batch: tuple[Tensor, Tensor]) -> dict[str, Tensor]:
        return {}

    def training_batches(self, batch_size: int, seed: int) -> Iterator[tuple[Tensor, Tensor]]:
        images, _ = self._splits()
        if len(images) < batch_size:
            raise DataError(
                f"{self.data} has {len(images)} training images, fewer than --batch-size {batch_size}; give a smaller"
                " batch size"
            )
        config = TrainConfig(data=str(self.data), output="", init=self.source.label, batch_size=batch_size, workers=0)
        loader = make_loader(config, self.supernet, images, training=True, workers=Workers(self.device))
        seed_everything(seed, 0)
        while True:
            for batch, labels in loader:
                yield batch.to(self.device), labels.to(self.device)

    def held_out(self, count: int) -> list[tuple[Tensor, Tensor]]:
        _, images = self._splits()
        indices = np.random.default_rng(0).permutation(len(images))[:count]
        if len(indices) < 2:
            raise DataError(f"{self.data} has {len(indices)} validation images; expected two or more")
        size = min(BATCH, -(-len(indices) // 2))
        return self._batches(ImageSet(images.source, images.indices[indices]), size)

    def workload(self, model: nn.Module, batch: int) -> OnePassWorkload:
        config = self.net.config
        images = torch.zeros(batch, config.channels, *(config.image_size or ()))
        return OnePassWorkload(model, [images], str(self.device))

    def save_static(self, path: Path, model: Any, kept: Mapping[str, Sequence[int]]) -> int:
        return write_subnet(model, model.architecture, path, ELASTIC)


def elastic(
    model: str | Path | nn.Module,
    *,
    pretrained: bool = False,
    space: str | Path | SearchSpace = "auto",
    attention: Sequence[str] = (),
    importance_by: str = "weight",
    data: str | Path | None = None,
    calibration_batches: int = 0,
    fit_steps: int = FitConfig().steps,
    out: str | Path | None = None,
    device: str = "cpu",
    **arguments: Any,
) -> VisionModel:
    """Convert a trained vision transformer of timm to a supernet whose largest network is the trained one.

    Args:
        model: timm's name of a model, a model, or a file (a checkpoint of timm's trainer, or weights).
        pretrained: load timm's published weights, if ``model`` is a name.
        space: search space, its name or file; ``auto`` for :func:`space_around`, ``auto:layers,ffn_dim`` to vary only
            these genes, ``attention`` to vary only the attention.
        attention: kinds of attention to choose from, in addition to softmax, if ``space`` is ``auto``.
        importance_by: criterion that sorts heads, hidden units and channels: ``activation``, ``weight`` or
            ``none``.
        data: images for calibration, as in ``timm_ext.train --data``.
        calibration_batches: number of calibration batches of 64 images.
        fit_steps: updates that fit each additional kind of attention; 0: copy the weights of softmax attention.
        out: new file for the supernet.
        arguments: further arguments of ``timm.create_model``, if ``model`` is a name.

    Raises:
        CheckpointError: the model cannot be converted.
        SpaceError: the model is not the largest network of ``space``.
    """
    check_settings(importance_by, calibration_batches, fit_steps if attention else 0)
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
        convert(
            trained, path, importance_by=importance_by, calibration_batches=calibration_batches, fit_steps=fit_steps
        )
    return trained.supernet
