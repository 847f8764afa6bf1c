"""Checkpoints as supernets of the core: recognised, evaluated, extracted, reported."""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path
from typing import Any

import pytest
import timm
import torch
from timm.utils import CheckpointSaver

from nas_core.cli import main
from nas_core.errors import DataError
from nas_core.files.reading import read_json
from tests.contracts.host import HostContract
from tests.timm_ext.running import SPACE, space_file
from timm_ext import load_model
from timm_ext.host import HOST, ImageSupernet


class TestTimmHost(HostContract):
    host = "timm"

    @pytest.fixture
    def checkpoint(self, run: Path) -> Path:
        return run / "best.pt"


def images() -> torch.Tensor:
    return torch.randn(2, 3, 32, 32, generator=torch.Generator().manual_seed(1))


def test_recognises_its_checkpoints_only(run: Path, converted: Path, tmp_path: Path) -> None:
    assert HOST.recognises(run / "best.pt") and HOST.recognises(converted / "trained.pt")
    torch.save({"cfg": {}, "optimizer_history": [], "model": {}}, tmp_path / "other.pt")
    assert not HOST.recognises(tmp_path / "other.pt")


def test_evaluates_as_training_did(run: Path, npz: Path) -> None:
    supernet = HOST.open(run / "last.pt")
    assert supernet.space == SPACE
    assert supernet.task == {"kind": "image", "classes": 2, "height": 32, "width": 32}
    expected = read_json(run / "metrics.json")[-1]["subnets"]
    for name, architecture in (("smallest", SPACE.smallest()), ("largest", SPACE.largest())):
        assert supernet.evaluate(architecture) == pytest.approx(expected[name], abs=1e-4)
    few = HOST.open(run / "last.pt", data=str(npz), valid_samples=10)
    assert few.evaluate(SPACE.largest())["top1"] % 10 == pytest.approx(0, abs=1e-6)


def test_which_images_are_evaluated(run: Path, npz: Path, folder: Path, tmp_path: Path) -> None:
    state = torch.load(run / "last.pt", weights_only=True)
    state["train"] |= {"val_count": 0, "data": str(npz), "val_data": None}
    by_default = tmp_path / "last.pt"
    torch.save(state, by_default)
    (tmp_path / "test").symlink_to(folder / "train")
    moved = shutil.copy(npz, tmp_path / npz.name)

    def count(checkpoint: Path, **options: Any) -> int:
        supernet = HOST.open(checkpoint, **options)
        assert isinstance(supernet, ImageSupernet)
        return len(supernet.validation_set())

    assert count(by_default) == count(by_default, data=str(moved)) == 10
    assert count(by_default, data=str(folder / "validation")) == 8  # all of them, not a tenth
    assert count(by_default, data=str(folder)) == 8
    assert count(by_default, data=str(folder), valid_subset="train") == 20
    assert count(by_default, data=str(tmp_path), valid_subset="test") == 20
    assert count(run / "last.pt", data=str(npz)) == 24  # --val-count: the same data, wherever it is


@pytest.mark.parametrize("suffix", [".pt", ".safetensors"])
def test_extracted_subnets_compute_what_the_supernet_does(run: Path, tmp_path: Path, suffix: str) -> None:
    architecture, out = SPACE.smallest(), tmp_path / f"subnet{suffix}"
    architecture.save(tmp_path / "A.json")
    arguments = ["--checkpoint", run / "best.pt", "--arch", tmp_path / "A.json", "--out", out]
    assert main(["extract", *map(str, arguments)]) == 0
    static, supernet = load_model(out), load_model(run / "best.pt")
    assert (static.is_supernet, static.architecture) == (False, architecture)
    with supernet.use_architecture(architecture):
        expected = supernet(images())
    named = timm.create_model("vit_cifar10_small", num_classes=2, subnet=architecture, checkpoint_path=str(out))
    for network in (static, named.eval()):
        torch.testing.assert_close(network(images()), expected, atol=1e-5, rtol=1e-5)


def test_checkpoints_of_timms_trainer(tmp_path: Path) -> None:
    options = {"search_space": str(space_file(tmp_path)), "mos": "layer"}
    model = timm.create_model("mformer_cifar10_small_supernet", num_classes=3, **options)
    args = argparse.Namespace(model="mformer_cifar10_small_supernet", model_kwargs=options, gp=None, img_size=None)
    saver = CheckpointSaver(model, torch.optim.SGD(model.parameters(), 0.1), args, checkpoint_dir=str(tmp_path))
    saver.save_checkpoint(0, metric=50.0)
    (checkpoint,) = tmp_path.glob("checkpoint-0*")
    supernet = HOST.open(checkpoint)
    assert HOST.recognises(checkpoint) and supernet.space == SPACE
    count = supernet.extract(SPACE.largest(), tmp_path / "subnet.pt")
    static = load_model(tmp_path / "subnet.pt")
    assert count == sum(p.numel() for p in static.parameters())
    with model.eval().use_architecture(SPACE.largest()):
        torch.testing.assert_close(static(images()), model(images()), atol=1e-5, rtol=1e-5)
    with pytest.raises(DataError, match="does not name its training images"):
        supernet.evaluate(SPACE.largest())


def test_a_search_is_reported_with_units(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["search", "--checkpoint", str(run / "best.pt"), "--out", str(tmp_path / "run")]
    assert main([*command, "--strategy", "random", "--set", "evaluations=6", "--finalists", "3"]) == 0
    capsys.readouterr()
    assert main(["report", str(tmp_path / "run")]) == 0
    line = capsys.readouterr().out.splitlines()[0]
    assert "loss (nats)" in line and "top-1 (%)" in line
