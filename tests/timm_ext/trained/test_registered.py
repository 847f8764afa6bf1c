"""Training continues with a converted model, by our loop and as timm's builds models."""

from __future__ import annotations

import argparse
import copy
from pathlib import Path
from typing import Any

import pytest
import timm
import torch
from timm.data import resolve_model_data_config
from timm.utils import ModelEmaV3

from nas_core.errors import CheckpointError, ConfigError, DataError
from tests.timm_ext.running import config
from tests.timm_ext.trained.tiny import images, vit
from timm_ext import load_model
from timm_ext.checkpoint import read_checkpoint
from timm_ext.host import HOST
from timm_ext.train import Trainer


@pytest.fixture
def supernet(converted: Path) -> Path:
    return converted / "supernet.pt"


def trainer(npz: Path, output: Path, supernet: Path, **changes: Any) -> Trainer:
    settings = {"model": "", "search_space": "", "init": str(supernet), "lr": 1e-3, **changes}
    return Trainer(config(npz, output, **settings))


def test_a_run_starts_with_a_converted_model(npz: Path, supernet: Path, tmp_path: Path) -> None:
    full, reloaded = trainer(npz, tmp_path / "whole", supernet, drop_path=0.1), load_model(supernet)
    full.run()
    assert full.model.space == reloaded.space and full.model.net.config.layer_order == reloaded.net.config.layer_order
    assert full.model.net.config.drop_path == 0.1
    assert resolve_model_data_config(full.model)["mean"] == (0.2, 0.2, 0.2)
    assert read_checkpoint(tmp_path / "whole" / "last.pt")["arch"] == "elastic_vit"
    opened = HOST.open(tmp_path / "whole" / "last.pt")
    smallest = opened.space.smallest()
    expected = full.history[-1]["subnets"]["smallest"]["loss"]
    assert opened.evaluate(smallest)["loss"] == pytest.approx(expected, abs=1e-4)
    opened.extract(smallest, tmp_path / "subnet.pt")
    static = trainer(npz, tmp_path / "static", tmp_path / "subnet.pt", epochs=1)
    static.run()
    assert not static.model.is_supernet and static.model.architecture["layers"] == smallest["layers"]


def test_timm_builds_it_by_name(supernet: Path) -> None:
    model = timm.create_model("elastic_vit", elastic=str(supernet), drop_path_rate=0.2, num_classes=2)
    assert torch.equal(model.eval()(images(vit())), load_model(supernet)(images(vit())))
    assert model.net.config.drop_path == 0.2
    assert resolve_model_data_config(model)["mean"] == (0.2, 0.2, 0.2)
    other = timm.create_model("elastic_vit", elastic=str(supernet), num_classes=5, img_size=64).eval()
    assert other(torch.zeros(1, 3, 64, 64)).shape == (1, 5)
    for changes in ({"elastic": ""}, {"class_token": False}, {"in_chans": 1}):
        with pytest.raises(ConfigError, match=next(iter(changes))):
            timm.create_model("elastic_vit", **{"elastic": str(supernet), **changes})


def test_checkpoints_of_timms_trainer_need_no_other_file(
    supernet: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(supernet.parent)
    model = timm.create_model("elastic_vit", elastic=supernet.name, drop_path_rate=0.1,
                              pretrained_cfg_overlay={"mean": (0.3, 0.3, 0.3)}).eval()  # fmt: skip
    average = ModelEmaV3(model, decay=0.5)
    average.update(model)
    args = argparse.Namespace(
        model="elastic_vit", img_size=None, in_chans=None, gp=None, model_kwargs={"elastic": supernet.name}
    )
    state = {"state_dict": model.state_dict(), "state_dict_ema": average.module.state_dict()}
    path = tmp_path / "last.pth.tar"
    torch.save({"arch": "elastic_vit", **state, "args": args}, path)
    monkeypatch.chdir(tmp_path)
    reloaded = load_model(path)
    assert reloaded.net.config.layer_order == model.net.config.layer_order
    assert resolve_model_data_config(reloaded)["mean"] == (0.3, 0.3, 0.3)
    for network in (reloaded, timm.create_model("elastic_vit", elastic=str(path)).eval()):
        assert torch.equal(network(images(vit())), model(images(vit())))
    assert HOST.open(path).space == model.space
    with pytest.raises(DataError):
        timm.create_model("elastic_vit", elastic=supernet.name)


def test_weights_of_another_file_are_rejected(supernet: Path, tmp_path: Path) -> None:
    """The same shapes in another order of layers would compute something else."""
    content = read_checkpoint(supernet)
    order = content["nas_ext_image"]["arguments"]["layer_order"]
    content["nas_ext_image"]["arguments"]["layer_order"] = tuple(reversed(order))
    torch.save(content, tmp_path / "other.pt")
    model = timm.create_model("elastic_vit", elastic=str(supernet), drop_path_rate=0.1)
    other = timm.create_model("elastic_vit", elastic=str(tmp_path / "other.pt"))
    for network in (other, copy.deepcopy(other)):  # as of moving averages
        with pytest.raises(CheckpointError, match="layer_order differ"):
            network.load_state_dict(model.state_dict())
    timm.create_model("elastic_vit", elastic=str(supernet)).load_state_dict(model.state_dict())
    model.load_state_dict(content["state_dict"])
