"""Batches of images."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from PIL import Image
from torch import Tensor
from transformers import AutoImageProcessor

from hf_ext.folder import DAMAGED, reason
from hf_ext.texts import BATCH
from nas_core.errors import CheckpointError, DataError

MAX_IMAGES = 500
"""Default number of images of an evaluation."""


def image_batches(folder: Path, data: Path | str | None, subset: str, count: int, config: Any, device: Any) -> Any:
    """Return batches of up to ``count`` images of ``data/subset/CLASS``, evenly spaced, with labels.

    Args:
        folder: model folder, with the settings of its image processor.
        config: configuration of the model; ``label2id`` maps its classes to labels.

    Raises:
        DataError: ``data`` is None, there are no images, or their classes are not the model's.
        CheckpointError: the folder has no image processor.
    """
    root = Path(data or "") / subset
    files = sorted(file for file in root.glob("*/*") if file.suffix.lower() in (".png", ".jpg", ".jpeg"))
    if data is None or not files:
        raise DataError(
            f"there are no images {root}/CLASS/*.png or .jpg; give a folder with train and valid, each with one folder"
            " of images per class, as --data"
        )
    names = sorted({file.parent.name for file in files})
    indices = config.label2id if set(names) <= {*config.label2id} else dict(zip(names, range(len(names)), strict=True))
    if indices is not config.label2id and len(names) != config.num_labels:
        raise DataError(
            f"{root} has {len(names)} class folders, but the model has {config.num_labels} classes; name the folders as"
            " in id2label of its config.json"
        )
    try:
        processor = AutoImageProcessor.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    except DAMAGED as error:
        raise CheckpointError(
            f"{folder} has no usable image processor ({reason(error)}); copy preprocessor_config.json into the folder"
        ) from None
    selected, batches = files[:: -(-len(files) // count)], list[dict[str, Tensor]]()
    for start in range(0, len(selected), BATCH):
        chunk = selected[start : start + BATCH]
        try:
            pixels = processor([Image.open(file).convert("RGB") for file in chunk], return_tensors="pt")["pixel_values"]
        except OSError as error:
            raise DataError(f"an image of {root} cannot be read ({reason(error)}); replace it") from None
        labels = torch.tensor([indices[file.parent.name] for file in chunk])
        batches.append({"pixel_values": pixels.to(device), "labels": labels.to(device)})
    return batches
