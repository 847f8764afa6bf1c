"""ViT and DeiT: subnets as plain folders, accuracy, and training."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from nas_core.errors import CheckpointError, DataError
from nas_core.models.kind import kind_of
from nas_core.supernet import open_supernet
from nas_core.supernet.elastic.conversion import TOLERANCE, convert
from nas_core.supernet.host import open_trained
from tests.hf_ext.test_conversion import genes
from tests.hf_ext.tiny import save

SETTINGS = {"image_size": 16, "patch_size": 8, "num_channels": 3, "num_labels": 2}


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Dark and light images, 12 to train on and 8 to validate on."""
    folder, stream = tmp_path_factory.mktemp("images"), np.random.default_rng(0)
    for split, count in (("train", 6), ("valid", 4)):
        for name, level in (("dark", 60), ("light", 190)):
            (folder / split / name).mkdir(parents=True)
            for number in range(count):
                pixels = stream.integers(level - 50, level + 50, (20, 20, 3)).astype(np.uint8)
                Image.fromarray(pixels).save(folder / split / name / f"{number}.png")
    return folder


@pytest.mark.parametrize("name", ["ViT", "DeiT"])
def test_the_largest_network_is_the_trained_one_and_a_subnet_is_plain(name: str, images: Path, tmp_path: Path) -> None:
    from transformers import AutoModelForImageClassification

    trained = save(f"{name}ForImageClassification", tmp_path / "trained", **SETTINGS)
    opened = open_trained(trained, data=str(images), calibration_batches=1)
    assert (
        convert(opened, tmp_path / "family", importance_by="activation", calibration_batches=1).difference <= TOLERANCE
    )
    supernet: Any = open_supernet(tmp_path / "family")
    assert kind_of(supernet.space).name == "image"
    assert (supernet.task["classes"], supernet.task["activation"]) == (2, "gelu")
    pixels = torch.randn(2, 3, 16, 16, generator=torch.Generator().manual_seed(0))
    for changes in ({}, {"layers": 2, "ffn_dim": 24}):
        architecture = genes(supernet, **changes)
        place = tmp_path / f"subnet{len(changes)}"
        supernet.extract(architecture, place)
        assert json.loads((place / "preprocessor_config.json").read_text())["size"]["height"] == 16
        loaded = AutoModelForImageClassification.from_pretrained(place).eval()
        with torch.no_grad():
            logits = supernet.elastic(supernet.elastic.select(architecture), {"pixel_values": pixels}).logits
            torch.testing.assert_close(logits, loaded(pixels).logits, rtol=0, atol=1e-5)
    with torch.no_grad():
        before = AutoModelForImageClassification.from_pretrained(trained).eval()(pixels).logits
        after = AutoModelForImageClassification.from_pretrained(tmp_path / "subnet0").eval()(pixels).logits
    torch.testing.assert_close(after, before, rtol=0, atol=1e-5)


def test_accuracy_and_training(images: Path, tmp_path: Path) -> None:
    from transformers import AutoModelForImageClassification, DefaultDataCollator, TrainingArguments

    from hf_ext import SupernetTrainer

    trained = save("ViTForImageClassification", tmp_path / "trained", **SETTINGS)
    convert(open_trained(trained, data=str(images)), tmp_path / "family")
    supernet: Any = open_supernet(tmp_path / "family")
    (only,) = supernet.batches()
    with torch.no_grad():
        expected = AutoModelForImageClassification.from_pretrained(trained).eval()(**only)
    metrics = supernet.evaluate(supernet.space.largest())
    assert metrics["loss"] == pytest.approx(float(expected.loss), rel=1e-5)
    assert metrics["accuracy"] == float((expected.logits.argmax(1) == only["labels"]).float().mean())
    arguments = TrainingArguments(
        str(tmp_path / "run"), max_steps=20, per_device_train_batch_size=8, learning_rate=3e-3, report_to=[],
        use_cpu=True, disable_tqdm=True, dataloader_pin_memory=False, save_steps=20,
    )  # fmt: skip
    samples = [{name: tensor[row] for name, tensor in only.items()} for row in range(8)]
    for distill in ("labels", "logits", "features"):
        options: dict[str, Any] = {"train_dataset": samples, "data_collator": DefaultDataCollator()}
        SupernetTrainer(tmp_path / "family", args=arguments, distill=distill, **options).train()
        if distill == "labels":
            after = open_supernet(tmp_path / "run" / "checkpoint-20")
            assert after.evaluate(after.space.smallest())["loss"] < supernet.evaluate(after.space.smallest())["loss"]


def test_wrong_images_and_models(images: Path, tmp_path: Path) -> None:
    trained = save("ViTForImageClassification", tmp_path / "trained", **{**SETTINGS, "num_labels": 3})
    with pytest.raises(DataError):  # two folders, three classes
        open_trained(trained, data=str(images), calibration_batches=1)
    with pytest.raises(DataError):
        open_trained(trained, data=str(tmp_path), calibration_batches=1)
    (images / "train" / "dark" / "0.png").rename(tmp_path / "0.png")
    (images / "train" / "dark" / "0.png").write_bytes(b"no image")
    usual = save("ViTForImageClassification", tmp_path / "usual", **SETTINGS)
    try:
        with pytest.raises(DataError):
            open_trained(usual, data=str(images), calibration_batches=1)
    finally:
        (tmp_path / "0.png").rename(images / "train" / "dark" / "0.png")
    (usual / "preprocessor_config.json").unlink()
    with pytest.raises(CheckpointError):
        open_trained(usual, data=str(images), calibration_batches=1)
    with pytest.raises(CheckpointError):  # a size for each side
        open_trained(save("ViTForImageClassification", tmp_path / "sides", **{**SETTINGS, "image_size": [16, 16]}))
    with pytest.raises(CheckpointError):  # no classifier
        open_trained(save("ViTModel", tmp_path / "features", **SETTINGS))
    with pytest.raises(CheckpointError):  # a decoder without a prediction of the next token
        open_trained(save("LlamaForSequenceClassification", tmp_path / "classes"))
