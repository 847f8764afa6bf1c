"""What the tests of training share: a space of very small networks, and a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nas_core.space import SearchSpace, save_space
from nas_core.space.image import image_space
from timm_ext.options import TrainConfig
from timm_ext.train import Trainer

SPACE: SearchSpace = image_space(
    "tiny_images",
    layers=(1, 2),
    embed_dims=(16, 24),
    ffn_dims=(16, 32),
    heads=(1, 2),
    head_dim=8,
    image_size=32,
    patch_size=8,
    attention=("softmax", "linear"),
    relative_clip=3,
)


def space_file(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    save_space(SPACE, folder / "space.yml")
    return folder / "space.yml"


def config(data: Path, output: Path, **changes: Any) -> TrainConfig:
    """A supernet of the tiny space for two epochs of three updates."""
    values = {
        "data": str(data),
        "output": str(output),
        "model": "mformer_cifar10_small_supernet",
        "search_space": str(space_file(output.parent)),
        "val_count": 24,
        "batch_size": 16,
        "epochs": 2,
        "lr": 0.01,
        "warmup_epochs": 0,
        "smoothing": 0.0,
        **changes,
    }
    return TrainConfig(**values)


def train(data: Path, output: Path, **changes: Any) -> Trainer:
    trainer = Trainer(config(data, output, **changes))
    trainer.run()
    return trainer
