"""Adapter of timm for the commands of ``nas-ext``."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from timm.data import create_loader, resolve_data_config

from nas_core.device import usable_device
from nas_core.errors import CheckpointError, DataError, NasExtError
from nas_core.export.parts import Exportable
from nas_core.files.archives import archive_pickle
from nas_core.files.reading import check_regular
from nas_core.models.image.export import image_part
from nas_core.precision import PRECISIONS, check_precision
from nas_core.space import Architecture, SearchSpace
from nas_core.supernet.host import Host, Report, Supernet
from timm_ext import standalone
from timm_ext.checkpoint import build, read_checkpoint, write_subnet
from timm_ext.data import ImageSet, is_training_data, open_images, open_splits, open_subset
from timm_ext.evaluation import evaluate
from timm_ext.models import prepared_for, stored_size
from timm_ext.trained.conversion import TrainedViT
from timm_ext.trained.reading import read_source
from timm_ext.trained.vit import write_plain

_LAST = "last.pt"
_HOST_BYTES = 2**30
_SHARE = 4
"""Preprocessed images are kept on the GPU if they need at most 1 / 4 of its free memory."""


class ImageSupernet(Supernet):
    """Image supernet in a checkpoint of ``timm_ext.train`` or timm's trainer, with moving-average weights if present.

    Args:
        data: validation images, or the training images from which they are held out; default: as in the training.
        valid_subset: ``valid``, or a subfolder of the data such as ``train`` or ``test``.
        valid_samples: number of random images to evaluate; default: all.
    """

    units: ClassVar[Mapping[str, str]] = {"loss": "nats", "top1": "%"}
    maximised: ClassVar[tuple[str, ...]] = ("top1",)

    def __init__(
        self,
        path: Path,
        data: str | None = None,
        valid_subset: str = "valid",
        valid_samples: int | None = None,
        device: str = "cpu",
        precision: str = "fp32",
    ) -> None:
        self.path, self._data, self._subset, self._images = path, data, valid_subset, valid_samples
        self.device = usable_device(device)
        self.precision = check_precision(precision, self.device)
        self._state = read_checkpoint(path)
        self._model = build(self._state, path, ema=True).to(self.device).eval()
        self.space: SearchSpace = self._model.space
        self._batches: Any = None
        self._prepared = prepared_for(self._model, str(self._state.get("arch")))
        height, width = stored_size(self._model)
        self.task = {"kind": "image", "classes": self._model.num_classes, "height": height, "width": width}
        if (activation := self._model.net.config.activation) != "relu":
            self.task["activation"] = activation  # of latency measurements

    def evaluated(self) -> Any:
        """Return batches of images (B, 3, height, width) and labels (B,) for evaluation."""
        if self._batches is None:
            images = self._select_images()
            size = 4 * len(images) * self._model.in_chans * self.task["height"] * self.task["width"]
            on_cuda = self.device.type == "cuda"
            limit = torch.cuda.mem_get_info(self.device)[0] // _SHARE if on_cuda else _HOST_BYTES
            self._batches = loader = self._loader(images)
            if size <= limit:  # otherwise each evaluation reads the images
                self._batches = [tuple(tensor.to(self.device) for tensor in batch) for batch in loader]
        return self._batches

    def _select_images(self) -> Any:
        images = self.validation_set()
        if self._images is not None and self._images < len(images):
            indices = np.sort(np.random.default_rng(0).choice(len(images), self._images, replace=False))
            images = ImageSet(images.source, images.indices[indices])
        if images.source.classes != self._model.num_classes:
            raise DataError(
                f"the images have {images.source.classes} classes, but {self.path} has {self._model.num_classes}; give"
                " the images that it was trained on"
            )
        return images

    def _loader(self, images: Any) -> Any:
        size = (self._model.in_chans, self.task["height"], self.task["width"])
        config = resolve_data_config({"input_size": size}, pretrained_cfg=self._prepared)
        names = ("input_size", "interpolation", "mean", "std", "crop_pct", "crop_mode")
        return create_loader(
            images,
            batch_size=256,
            num_workers=0,
            pin_memory=self.device.type == "cuda",
            use_prefetcher=False,
            persistent_workers=False,
            **{name: config[name] for name in names},
        )

    def validation_set(self) -> ImageSet:
        run = self._state.get("train") or {}
        if self._subset != "valid":
            paths = [self._data] if self._data else [run.get("val_data"), run.get("data")]
            return ImageSet(open_subset([Path(path) for path in paths if path], self._subset))
        if run and not run["val_data"]:
            trained_on = Path(run["data"])
            data = Path(self._data or trained_on)
            # The training data may have moved: its held-out images must stay apart from those it was trained on.
            if is_training_data(data, trained_on, run["val_count"]):
                return open_splits(data, None, run["val_count"], run["seed"])[1]
            return ImageSet(open_images(data, "validation"))
        if path := self._data or run.get("val_data"):
            return ImageSet(open_images(path, "validation"))
        raise DataError(f"{self.path} does not name its training images; give images as --data")

    def evaluate(self, architecture: Architecture, report: Report | None = None) -> dict[str, float]:
        """Return ``loss`` (cross-entropy in nats) and ``top1`` (percent) with inherited weights."""
        batches = self.evaluated()
        after_batch = None
        if report is not None:
            after_batch = lambda index, metrics: report(index / len(batches), metrics["it"])  # noqa: E731
        return evaluate(self._model, batches, {"it": architecture}, self.device, self.precision, after_batch)["it"]

    def extract(self, architecture: Architecture, path: Path) -> int:
        arch = str(self._state.get("arch") or "")
        return write_subnet(self._model, self.space.validate(architecture), Path(path), arch)

    def extract_plain(self, architecture: Architecture, path: Path) -> int:
        return write_plain(self._model.net, self.space.validate(architecture), self._prepared, Path(path))

    def exportable(self, architecture: Architecture) -> Exportable:
        architecture = self.space.validate(architecture)
        part = image_part(self._model.net, architecture, self.task["height"], self.task["width"])
        prepared = {name: list(self._prepared[name]) for name in ("mean", "std")}
        info = {"kind": "image", "architecture": architecture.to_dict(), **self.task, **prepared}
        return Exportable((part,), info)

    # -- studies -------------------------------------------------------------------------------------------------------

    @property
    def network(self) -> Any:
        return self._model.net

    def examples_key(self) -> str:
        digest = hashlib.sha256()
        for index, (images, labels) in enumerate(self.evaluated()):
            if not index:
                digest.update(images.cpu().contiguous().numpy().tobytes())
            digest.update(labels.cpu().to(torch.int64).numpy().tobytes())
        return digest.hexdigest()[:16]

    def _origin(self) -> standalone.Origin:
        return standalone.Origin(self._state, self.path, self._data, self.space)

    def training_data(self) -> dict[str, str]:
        return standalone.data_of(self._origin())

    def standalone_command(self, architecture: Architecture, folder: Path, changes: Mapping[str, str]) -> list[str]:
        return _train(standalone.settings(self._origin(), architecture, folder, changes))

    def evaluate_standalone(self, folder: Path) -> tuple[dict[str, float], str]:
        options = (self._data, self._subset, self._images, str(self.device), self.precision)
        network = type(self)(folder / _LAST, *options)
        return network.evaluate(network.space.largest()), network.examples_key()


def _train(arguments: list[str]) -> list[str]:
    return [sys.executable, "-m", "timm_ext.train", *arguments]


_MARK = b"nas_ext_image"
_TIMM_MARKS = (b"patch_embed.proj.weight", b"blocks.0.")
_MAX_HEADER = 2**24


def _is_own_format(content: bytes) -> bool:
    return _MARK in content or (b"net.patch_embed.weight" in content and b"state_dict" in content)


def _content(checkpoint: Path) -> bytes:
    """Return the part of a file that contains the names of tensors."""
    if checkpoint.suffix != ".safetensors":
        return archive_pickle(checkpoint)
    try:
        with check_regular(checkpoint).open("rb") as file:
            return file.read(min(int.from_bytes(file.read(8), "little"), _MAX_HEADER))
    except (OSError, NasExtError):
        return b""


class TimmHost(Host):
    """Host of timm models; a checkpoint is a torch or safetensors file."""

    name = "timm"
    precisions = PRECISIONS

    def recognises(self, checkpoint: Path) -> bool:
        content = _content(checkpoint)
        return _is_own_format(content) or all(name in content for name in _TIMM_MARKS)

    def open(self, checkpoint: Path, **options: Any) -> Supernet:
        supernet = self.open_exportable(checkpoint, **options)
        if not supernet.space.cardinality() > 1:
            raise CheckpointError(f"{checkpoint} is a static network; give the checkpoint of a supernet")
        return supernet

    def open_exportable(self, checkpoint: Path, **options: Any) -> ImageSupernet:
        if not _is_own_format(_content(Path(checkpoint))) and self.recognises(Path(checkpoint)):
            raise CheckpointError(
                f"{checkpoint} is a model of timm, not a supernet; convert it to a supernet with 'nas-ext elastic'"
            )
        return ImageSupernet(Path(checkpoint), **options)

    def open_trained(
        self,
        checkpoint: Path,
        *,
        data: str | None = None,
        space: str = "auto",
        attention: Sequence[str] = (),
        calibration_batches: int = 0,
        device: str = "cpu",
    ) -> TrainedViT:
        trained = TrainedViT(read_source(Path(checkpoint)), space, attention, data, device)
        if calibration_batches:
            trained.calibration(1)
        return trained


HOST = TimmHost()
