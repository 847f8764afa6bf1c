"""Checkpoints as supernets of the core: recognised, evaluated, extracted."""

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
from nas_core.errors import CheckpointError, ConfigError, DataError
from nas_core.files import read_json
from nas_core.space import space_to_dict
from nas_core.supernet.host import Host, Supernet, hosts
from tests.contracts.host import HostContract
from tests.timm_ext.running import SPACE, space_file, train
from timm_ext import load_model
from timm_ext.host import HOST, ImageSupernet, place_of


@pytest.fixture(scope="module")
def run(npz: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a trained supernet with experts and moving averages."""
    folder = tmp_path_factory.mktemp("supernet") / "run"
    train(npz, folder, mos="neuron", ema=0.5)
    return folder


class TestTimmHost(HostContract):
    host = "timm"

    @pytest.fixture
    def checkpoint(self, run: Path) -> Path:
        return run / "best.pt"


def images() -> torch.Tensor:
    return torch.randn(2, 3, 32, 32, generator=torch.Generator().manual_seed(1))


def test_the_entry_point_is_this_host() -> None:
    found: Any = hosts().get("timm")
    if found is None:
        pytest.skip("the project was installed before it had this entry point; run pip install -e . again")
    assert found is HOST
    assert HOST.name == "timm"
    host: Host = HOST
    assert host


def test_recognises_its_checkpoints_only(run: Path, tmp_path: Path) -> None:
    assert HOST.recognises(run / "best.pt")
    torch.save({"cfg": {}, "optimizer_history": [], "model": {}}, tmp_path / "other.pt")
    (tmp_path / "text.pt").write_text("text")
    for name in ("other.pt", "text.pt", "absent.pt"):
        assert not HOST.recognises(tmp_path / name)


def test_what_other_plug_ins_allow_stays_allowed(run: Path) -> None:
    known = torch.serialization.get_safe_globals()
    try:
        for allowed in ([], [argparse.Namespace]):
            torch.serialization.clear_safe_globals()
            torch.serialization.add_safe_globals(allowed)
            load_model(run / "best.pt")
            assert torch.serialization.get_safe_globals() == allowed
    finally:
        torch.serialization.clear_safe_globals()
        torch.serialization.add_safe_globals(known)


def test_evaluates_as_training_did(run: Path, npz: Path) -> None:
    supernet = HOST.open(run / "last.pt")
    assert isinstance(supernet, Supernet)
    assert supernet.space == SPACE
    assert supernet.task == {"kind": "image", "classes": 2, "height": 32, "width": 32}
    expected = read_json(run / "metrics.json")[-1]["subnets"]
    for name, architecture in (("smallest", SPACE.smallest()), ("largest", SPACE.largest())):
        assert supernet.evaluate(architecture) == pytest.approx(expected[name], abs=1e-4)
    few = HOST.open(run / "last.pt", data=str(npz), valid_sentences=10)
    assert few.evaluate(SPACE.largest())["top1"] % 10 == pytest.approx(0, abs=1e-6)
    assert few.evaluate(SPACE.largest()) == few.evaluate(SPACE.largest())


def test_where_prepared_images_are_kept() -> None:
    size, half = 2**20, 2**29
    assert place_of(size, None) == "host" and place_of(2**31, None) == "nowhere"
    assert place_of(half, 4 * half) == "device" and place_of(half, 4 * half - 1) == "host"
    assert place_of(2**33, 2**36) == "device" and place_of(2**33, 2**34) == "nowhere"


def test_prepared_images_are_read_once(run: Path) -> None:
    supernet = HOST.open(run / "last.pt", precision="bf16")
    first = supernet.evaluate(SPACE.largest())
    assert isinstance(supernet, ImageSupernet) and supernet.precision == "bf16"
    supernet.validation_set = None  # type: ignore[method-assign, assignment]
    assert supernet.evaluate(SPACE.largest()) == first
    with pytest.raises(ConfigError, match="precision tf32 is of NVIDIA devices"):
        HOST.open(run / "last.pt", precision="tf32")


@pytest.fixture(scope="module")
def by_default(npz: Path, run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its checkpoint as if a tenth of the images had been held out by default."""
    state = torch.load(run / "last.pt", weights_only=True)
    state["train"] |= {"val_count": 0, "data": str(npz), "val_data": None}
    path = tmp_path_factory.mktemp("by-default") / "last.pt"
    torch.save(state, path)
    return path


def evaluated_on(checkpoint: Path, **options: Any) -> int:
    return len(HOST.open(checkpoint, **options).validation_set())


def test_which_images_are_evaluated(by_default: Path, run: Path, npz: Path, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "test").symlink_to(folder / "train")
    moved = tmp_path / npz.name
    shutil.copy(npz, moved)
    held_out = evaluated_on(by_default)
    assert held_out == evaluated_on(by_default, data=str(moved)) < 72
    assert evaluated_on(by_default, data=str(folder / "validation")) == 8  # all of them, not a tenth
    assert evaluated_on(by_default, data=str(folder)) == 8
    assert evaluated_on(by_default, data=str(folder), valid_subset="train") == 20
    assert evaluated_on(by_default, data=str(folder), valid_subset="val") == 8
    assert evaluated_on(by_default, data=str(tmp_path), valid_subset="test") == 20
    assert evaluated_on(run / "last.pt", data=str(npz)) == 24  # --val-count: the same data, wherever it is
    for data in (folder, npz):
        with pytest.raises(DataError, match=f"no images of --valid-subset test in {data}"):
            evaluated_on(by_default, data=str(data), valid_subset="test")


@pytest.mark.parametrize("suffix", [".pt", ".safetensors"])
def test_extracted_subnets_compute_what_the_supernet_does(run: Path, tmp_path: Path, suffix: str) -> None:
    architecture, out = SPACE.smallest(), tmp_path / f"subnet{suffix}"
    architecture.save(tmp_path / "A.json")
    files = ["--checkpoint", str(run / "best.pt"), "--arch", str(tmp_path / "A.json"), "--out", str(out)]
    if "timm" in hosts():
        assert main(["extract", *files]) == 0
    else:
        HOST.open(run / "best.pt").extract(architecture, out)
    static = load_model(out)
    supernet = load_model(run / "best.pt")
    assert (static.is_supernet, static.architecture) == (False, architecture)
    with supernet.using(architecture):
        expected = supernet(images())
    torch.testing.assert_close(static(images()), expected, atol=1e-5, rtol=1e-5)
    named = timm.create_model("vit_cifar10_small", num_classes=2, subnet=architecture, checkpoint_path=str(out)).eval()
    torch.testing.assert_close(named(images()), expected, atol=1e-5, rtol=1e-5)


def test_checkpoints_of_timms_trainer(tmp_path: Path) -> None:
    options = {"search_space": str(space_file(tmp_path)), "mos": "layer"}
    model = timm.create_model("mformer_cifar10_small_supernet", num_classes=3, **options)
    args = argparse.Namespace(
        model="mformer_cifar10_small_supernet", model_kwargs=options, gp=None, img_size=None, lr=0.1
    )
    saver = CheckpointSaver(model, torch.optim.SGD(model.parameters(), 0.1), args, checkpoint_dir=str(tmp_path))
    saver.save_checkpoint(0, metric=50.0)
    (checkpoint,) = tmp_path.glob("checkpoint-0*")
    assert HOST.recognises(checkpoint)
    supernet = HOST.open(checkpoint)
    assert supernet.space == SPACE
    count = supernet.extract(SPACE.largest(), tmp_path / "subnet.pt")
    static = load_model(tmp_path / "subnet.pt")
    assert count == sum(p.numel() for p in static.parameters())
    with model.eval().using(SPACE.largest()):
        torch.testing.assert_close(static(images()), model(images()), atol=1e-5, rtol=1e-5)
    with pytest.raises(DataError, match="does not say what it was trained on"):
        supernet.evaluate(SPACE.largest())


def test_wrong_checkpoints_are_explained(run: Path, npz: Path, folder: Path, tmp_path: Path) -> None:
    HOST.open(run / "last.pt").extract(SPACE.smallest(), tmp_path / "static.pt")
    with pytest.raises(CheckpointError, match="is a static network; expected the checkpoint of a supernet"):
        HOST.open(tmp_path / "static.pt")
    state = torch.load(run / "last.pt", weights_only=True)
    broken = {
        "version": {**state, "nas_ext_image": {**state["nas_ext_image"], "version": 99}},
        "misuse": {**state, "nas_ext_image": {"version": 1, "space": space_to_dict(SPACE), "arguments": {"x": 1}}},
        r"misuse an argument \(invalid literal for int": {
            **state,
            "nas_ext_image": {
                **state["nas_ext_image"],
                "arguments": {**state["nas_ext_image"]["arguments"], "class_token": "${env:HOME}"},
            },
        },
        "does not fit this network": {
            **state,
            "state_dict_ema": None,
            "state_dict": {"net.norm.weight": torch.ones(3)},
        },
        "holds no model": {"nas_ext_image": 1},
    }
    for said, content in broken.items():
        torch.save(content, tmp_path / "broken.pt")
        with pytest.raises(Exception, match=said) as caught:
            HOST.open(tmp_path / "broken.pt")
        assert "\n" not in str(caught.value)
    with pytest.raises(DataError, match="no file"):
        load_model(tmp_path / "absent.pt")
    (tmp_path / "bad.safetensors").write_bytes(b"no safetensors")
    with pytest.raises(CheckpointError, match="is no subnet written by"):
        load_model(tmp_path / "bad.safetensors")
