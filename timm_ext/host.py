"""Checkpoints of image supernets as supernets of ``nas_core``: opened, evaluated with inherited weights, extracted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from nas_core.device import usable_device
from nas_core.errors import CheckpointError, DataError, NasExtError
from nas_core.files import archive_pickle, check_regular
from nas_core.precision import PRECISIONS, check_precision
from nas_core.space import Architecture, SearchSpace
from nas_core.supernet.host import Host, Report, Supernet
from timm_ext.studied.supernet import StudiedSupernet
from timm_ext.training_log import training_curves, training_logs

if TYPE_CHECKING:
    from nas_core.export import Exportable
    from nas_core.supernet.elastic.take_over import Trained
    from timm_ext.published import TimmNetworks

_MARK = b"nas_ext_image"
_OF_TIMM = (b"patch_embed.proj.weight", b"blocks.0.")
"""Names in any vision transformer of timm; whether it can be taken over is told in a sentence."""
_KEPT_BYTES = 2**30
"""Prepared images are kept in the host's memory up to this size."""
_SHARE = 4
"""They take this part of a GPU's free memory at most: a fourth."""
_LARGEST_HEADER = 2**24


class ImageSupernet(StudiedSupernet):
    """A checkpoint of ``timm_ext.train`` or of timm's own trainer, whose moving averages are used where there are any.

    Evaluates on the images that the run validated on: those of its validation data, or those that it held out of its
    training data. ``data`` says where that data is now; where it is other data, without a ``train/`` in it, all its
    images are taken. ``valid_subset`` names a folder in it (``train``, ``val``, ``test``) whose images are evaluated
    instead; ``valid_sentences`` takes only so many. They are read on the first evaluation, and stay on the device where
    it has room.

    Evaluations compute in ``precision``; what is extracted or exported are the float32 weights.
    """

    units: ClassVar[Mapping[str, str]] = {"loss": "nats", "top1": "%"}
    maximised: ClassVar[tuple[str, ...]] = ("top1",)

    def __init__(
        self,
        path: Path,
        data: str | None = None,
        valid_subset: str = "valid",
        valid_sentences: int | None = None,
        device: str = "cpu",
        precision: str = "fp32",
    ) -> None:
        from timm_ext.checkpoint import build, read_checkpoint
        from timm_ext.models import stored_size

        self.path, self._data, self._subset, self._images = path, data, valid_subset, valid_sentences
        self.device = usable_device(device)
        self.precision = check_precision(precision, self.device)
        self._state = read_checkpoint(path)
        self._model = build(self._state, path, ema=True).to(self.device).eval()
        self.space: SearchSpace = self._model.space
        self._batches: Any = None
        height, width = stored_size(self._model)
        self.task = {"kind": "image", "classes": self._model.num_classes, "height": height, "width": width}
        if (activation := self._model.net.config.activation) != "relu":
            self.task["activation"] = activation  # what latency is measured with, unless it says otherwise

    def evaluated(self) -> Any:
        """The images that are evaluated (B, 3, height, width) with their labels (B,), in batches in the order of the
        folders; read once where they are kept."""
        if self._batches is None:
            images = self._chosen_images()
            size = 4 * len(images) * self._model.in_chans * self.task["height"] * self.task["width"]
            where = place_of(size, _free_memory(self.device))
            loader = self._loader(images, pinned=where != "device")
            if where == "device":
                self._batches = [tuple(tensor.to(self.device) for tensor in batch) for batch in loader]
            else:
                self._batches = list(loader) if where == "host" else loader
        return self._batches

    def batches(self) -> Iterator[Any]:
        """The images of :meth:`evaluated` in a random order, the same each time, so that each batch has all classes;
        read when they are asked for."""
        from timm_ext.data import ImageSet

        images = self._chosen_images()
        mixed = np.random.default_rng(0).permutation(images.indices)
        yield from self._loader(ImageSet(images.source, mixed), pinned=True)

    def _chosen_images(self) -> Any:
        from timm_ext.data import ImageSet

        images = self.validation_set()
        if self._images is not None and self._images < len(images):
            chosen = np.sort(np.random.default_rng(0).choice(len(images), self._images, replace=False))
            images = ImageSet(images.source, images.indices[chosen])
        if images.source.classes != self._model.num_classes:
            raise DataError(
                f"the images have {images.source.classes} classes, {self.path} {self._model.num_classes};"
                " give the data it was trained on"
            )
        return images

    def _loader(self, images: Any, pinned: bool) -> Any:
        from timm.data import create_loader, resolve_data_config

        size = (self._model.in_chans, self.task["height"], self.task["width"])
        config = resolve_data_config({"input_size": size}, pretrained_cfg=self._statistics())
        wanted = ("input_size", "interpolation", "mean", "std", "crop_pct", "crop_mode")
        return create_loader(
            images,
            batch_size=256,
            num_workers=0,
            pin_memory=pinned and self.device.type == "cuda",
            use_prefetcher=False,
            persistent_workers=False,
            **{name: config[name] for name in wanted},
        )

    def validation_set(self) -> Any:
        """The images that are evaluated, before a smaller number of them is chosen."""
        from timm_ext.data import ImageSet, is_training_data, open_images, open_splits, open_subset

        run = self._state.get("train") or {}
        trained_on = Path(run["data"]) if run else None
        if self._subset != "valid":
            places = [self._data] if self._data else [run.get("val_data"), run.get("data")]
            return ImageSet(open_subset([Path(place) for place in places if place], self._subset))
        if trained_on and not run["val_data"]:
            data = Path(self._data or trained_on)
            # A training set may have been moved: its held-out images must not be mixed with those it was trained on.
            if is_training_data(data, trained_on, run["val_count"]):
                return open_splits(data, None, run["val_count"], run["seed"])[1]
            return ImageSet(open_images(data, "validation"))
        if path := self._data or run.get("val_data"):
            return ImageSet(open_images(path, "validation"))
        raise DataError(f"{self.path} does not say what it was trained on; give images with --data")

    def _statistics(self) -> dict[str, Any]:
        """How images were prepared in training."""
        from timm_ext.models import prepared_for

        return prepared_for(self._model, str(self._state.get("arch")))

    def evaluate(self, architecture: Architecture, report: Report | None = None) -> dict[str, float]:
        """``loss`` (cross-entropy, nats) and ``top1`` (percent) with inherited weights."""
        from timm_ext.evaluation import evaluate

        batches = self.evaluated()

        def after_batch(index: int, metrics: Mapping[str, dict[str, float]]) -> None:
            assert report is not None
            report(index / len(batches), metrics["it"])

        each = None if report is None else after_batch
        return evaluate(self._model, batches, {"it": architecture}, self.device, self.precision, each)["it"]

    def extract(self, architecture: Architecture, path: Path) -> int:
        """Save the collapsed subnet, as safetensors if the name ends so, else as a checkpoint; its parameters."""
        from timm_ext.checkpoint import write_subnet

        arch = str(self._state.get("arch") or "")
        return write_subnet(self._model, self.space.validate(architecture), Path(path), arch)

    def extract_plain(self, architecture: Architecture, path: Path) -> int:
        """Save the subnet as a model of timm's, which loads it without this project; its parameters.

        Raises:
            ConfigError: timm's class has no such network; what differs is said.
        """
        from timm_ext.trained.plain import write_plain

        return write_plain(self._model.net, self.space.validate(architecture), self._statistics(), Path(path))

    def exportable(self, architecture: Architecture) -> Exportable:
        """The subnet, for images of the size it was trained on."""
        from nas_core.export import Exportable
        from nas_core.models.image.export import image_part

        architecture = self.space.validate(architecture)
        part = image_part(self._model.net, architecture, self.task["height"], self.task["width"])
        prepared = {name: list(self._statistics()[name]) for name in ("mean", "std")}
        info = {"kind": "image", "architecture": architecture.to_dict(), **self.task, **prepared}
        return Exportable((part,), info)


def place_of(size: int, free: int | None) -> str:
    """Where prepared images of so many bytes are kept: on the ``device`` with so much free memory (None: the CPU), on
    the ``host``, or ``nowhere``, so that they are read anew for each evaluation."""
    if free is not None and size <= free // _SHARE:
        return "device"
    return "host" if size <= _KEPT_BYTES else "nowhere"


def _free_memory(device: Any) -> int | None:
    import torch

    return int(torch.cuda.mem_get_info(device)[0]) if device.type == "cuda" else None


def _header(path: Path) -> bytes:
    try:
        with check_regular(path).open("rb") as file:
            return file.read(min(int.from_bytes(file.read(8), "little"), _LARGEST_HEADER))
    except (OSError, NasExtError):
        return b""


def _is_ours(content: bytes) -> bool:
    return _MARK in content or (b"net.patch_embed.weight" in content and b"state_dict" in content)


def _content(checkpoint: Path) -> bytes:
    """What names a file's tensors: of torch's zip format the archive's pickle, of safetensors the header."""
    if checkpoint.suffix == ".safetensors":
        return _header(checkpoint)
    return archive_pickle(checkpoint)


class TimmHost(Host):
    """The host of :data:`nas_core.adapters.TIMM`."""

    name = "timm"
    precisions = PRECISIONS
    training_logs = staticmethod(training_logs)
    training_curves = staticmethod(training_curves)

    @property
    def networks(self) -> TimmNetworks:
        """What builds timm's networks by name."""
        from timm_ext.published import NETWORKS

        return NETWORKS

    def recognises(self, checkpoint: Path) -> bool:
        """torch's zip format with our settings or timm's keys, also of timm's own vision transformers; only the
        archive's pickle is looked at. Of safetensors, only the header."""
        content = _content(checkpoint)
        return _is_ours(content) or all(name in content for name in _OF_TIMM)

    def open(self, checkpoint: Path, **options: Any) -> Supernet:
        """Open a supernet; see :class:`nas_core.supernet.host.Host`."""
        supernet = self.open_exportable(checkpoint, **options)
        if not supernet.space.cardinality() > 1:
            raise CheckpointError(f"{checkpoint} is a static network; expected the checkpoint of a supernet")
        return supernet

    def open_exportable(self, checkpoint: Path, **options: Any) -> ImageSupernet:
        """Open what can be exported; see :class:`nas_core.supernet.host.Host`."""
        import timm_ext  # noqa: F401  registers models

        if not _is_ours(_content(Path(checkpoint))) and self.recognises(Path(checkpoint)):
            raise CheckpointError(
                f"{checkpoint} is a model that timm has trained; make a supernet of it with 'nas-ext elastic'"
            )
        return ImageSupernet(Path(checkpoint), **options)

    def open_trained(
        self,
        checkpoint: Path,
        *,
        data: str | None = None,
        space: str = "auto",
        attention: Sequence[str] = (),
        calibrate: int = 0,
        device: str = "cpu",
    ) -> Trained:
        """Open a model that timm has trained, to make a supernet of it.

        Raises:
            NasExtError: it cannot be taken over; the message says why.
        """
        from timm_ext.trained.taking import open_trained

        return open_trained(
            Path(checkpoint), data=data, space=space, attention=attention, calibrate=calibrate, device=device
        )


HOST = TimmHost()
