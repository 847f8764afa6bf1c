"""The host of image supernets, entry point ``nas_ext.hosts: timm``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nas_core.errors import CheckpointError, NasExtError
from nas_core.files.archives import archive_pickle
from nas_core.files.reading import check_regular
from nas_core.precision import PRECISIONS
from nas_core.supernet.host import Host, Supernet
from timm_ext.supernet import ImageSupernet
from timm_ext.trained.conversion import TrainedViT
from timm_ext.trained.reading import read_source
from timm_ext.training_log import training_curves, training_logs

_MARK = b"nas_ext_image"
_OF_TIMM = (b"patch_embed.proj.weight", b"blocks.0.")
_LARGEST_HEADER = 2**24


def _is_ours(content: bytes) -> bool:
    return _MARK in content or (b"net.patch_embed.weight" in content and b"state_dict" in content)


def _content(checkpoint: Path) -> bytes:
    """Return the part of a file with tensor names: the archive's pickle, or the safetensors header."""
    if checkpoint.suffix != ".safetensors":
        return archive_pickle(checkpoint)
    try:
        with check_regular(checkpoint).open("rb") as file:
            return file.read(min(int.from_bytes(file.read(8), "little"), _LARGEST_HEADER))
    except (OSError, NasExtError):
        return b""


class TimmHost(Host):
    """timm as a host."""

    name = "timm"
    precisions = PRECISIONS
    training_logs = staticmethod(training_logs)
    training_curves = staticmethod(training_curves)

    @property
    def networks(self) -> Any:
        from timm_ext.published import NETWORKS

        return NETWORKS

    def recognises(self, checkpoint: Path) -> bool:
        """Return whether a file has tensor names of an image supernet or timm's vision transformers."""
        content = _content(checkpoint)
        return _is_ours(content) or all(name in content for name in _OF_TIMM)

    def open(self, checkpoint: Path, **options: Any) -> Supernet:
        supernet = self.open_exportable(checkpoint, **options)
        if not supernet.space.cardinality() > 1:
            raise CheckpointError(f"{checkpoint} is a static network; expected the checkpoint of a supernet")
        return supernet

    def open_exportable(self, checkpoint: Path, **options: Any) -> ImageSupernet:
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
    ) -> TrainedViT:
        trained = TrainedViT(read_source(Path(checkpoint)), space, attention, data, device)
        if calibrate:
            trained.calibration(1)
        return trained


HOST = TimmHost()
