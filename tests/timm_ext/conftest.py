"""Images in two classes, as an npz of JPEG bytes and as folders, and trained toys."""

from __future__ import annotations

import io
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

collect_ignore_glob = [] if find_spec("timm") and find_spec("torchvision") else ["*"]
CLASSES = ("red", "blue")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    folder = Path(__file__).parent
    for item in items:
        if folder in item.path.parents:
            item.add_marker(pytest.mark.timm)
            for warning in (UserWarning, FutureWarning, DeprecationWarning):  # of timm, torchvision and exporters
                item.add_marker(pytest.mark.filterwarnings(f"ignore::{warning.__name__}"))


def picture(label: int, rng: np.random.Generator) -> Any:
    from PIL import Image

    pixels = rng.integers(0, 120, (32, 32, 3))
    pixels[..., 2 * label] += 100
    return Image.fromarray(pixels.astype(np.uint8))


@pytest.fixture(scope="session")
def npz(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """72 images, grouped by class."""
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1], 36)
    files = []
    for label in labels:
        buffer = io.BytesIO()
        picture(int(label), rng).save(buffer, "JPEG")
        files.append(np.frombuffer(buffer.getvalue(), np.uint8))
    offset = np.concatenate([[0], np.cumsum([len(file) for file in files])])
    path = tmp_path_factory.mktemp("images") / "images.npz"
    np.savez(path, data=np.concatenate(files), offset=offset, label=labels, classes=np.array(CLASSES))
    return path


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """20 images to train on and 8 to validate on."""
    root, rng = tmp_path_factory.mktemp("folder"), np.random.default_rng(1)
    for split, count in (("train", 10), ("validation", 4)):
        for label, name in enumerate(CLASSES):
            (root / split / name).mkdir(parents=True)
            for index in range(count):
                picture(label, rng).save(root / split / name / f"{index}.png")
    return root


@pytest.fixture(scope="session")
def run(npz: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a trained supernet with experts, moving averages and label smoothing."""
    from tests.timm_ext.running import train

    folder = tmp_path_factory.mktemp("supernet") / "run"
    train(npz, folder, mos="neuron", ema=0.5, smoothing=0.2)
    return folder


@pytest.fixture(scope="session")
def converted(npz: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a trained model, the supernet made of it (layers sorted), and a subnet of that."""
    import torch

    from tests.timm_ext.trained.tiny import save, vit
    from timm_ext import elastic, load_model, write_subnet

    folder = tmp_path_factory.mktemp("converted")
    state = torch.load(save(vit(), folder / "trained.pt"), weights_only=False)
    state["args"].mean = (0.2, 0.2, 0.2)  # as timm's --mean
    torch.save(state, folder / "trained.pt")
    elastic(
        folder / "trained.pt", importance_by="activation", calibration_batches=1, data=npz, out=folder / "supernet.pt"
    )
    supernet = load_model(folder / "supernet.pt")
    write_subnet(supernet, supernet.space.smallest(), folder / "subnet.pt")
    return folder
