"""Adapter of ``transformers`` for the commands of ``nas-ext``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nas_core.optional import require
from nas_core.supernet.host import Host, Supernet


class HuggingFaceHost(Host):
    """Host of ``transformers`` models; a checkpoint is a folder with ``config.json``."""

    name = "huggingface"
    expects = "a folder with config.json"
    takes_uniform = True

    def recognises(self, checkpoint: Path) -> bool:
        return (checkpoint / "config.json").is_file()

    def open(self, checkpoint: Path, **options: Any) -> Supernet:
        _check_package()
        from hf_ext.supernet import HuggingFaceSupernet

        return HuggingFaceSupernet(checkpoint, **options)

    def open_exportable(self, checkpoint: Path, **options: Any) -> Any:
        _check_package()
        from hf_ext.exporting import PlainModel
        from hf_ext.folder import SETTINGS

        return self.open(checkpoint, **options) if (checkpoint / SETTINGS).exists() else PlainModel(checkpoint)

    def open_trained(self, checkpoint: Path, **options: Any) -> Any:
        _check_package()
        from hf_ext.trained import TrainedModel

        return TrainedModel(checkpoint, **options)


def _check_package() -> None:
    require("transformers", "models of Hugging Face", "hf")


HOST = HuggingFaceHost()
