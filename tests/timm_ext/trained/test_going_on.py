"""Training goes on with a supernet that was made of a trained model, by our loop and as timm's builds models."""

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
from timm_ext import elastic, load_model
from timm_ext.checkpoint import read_checkpoint, save_checkpoint
from timm_ext.host import HOST
from timm_ext.train import Trainer


@pytest.fixture(scope="module")
def supernet(npz: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With layers in an order of their own, and experts."""
    path = tmp_path_factory.mktemp("taken") / "supernet.pt"
    model = vit(pretrained_cfg_overlay={"mean": (0.2, 0.2, 0.2)})
    elastic(model, importance_by="activation", calibrate=1, data=npz, mos="layer", out=path)
    return path


def going_on(npz: Path, output: Path, supernet: Path, **changes: Any) -> Trainer:
    settings = {"model": "", "search_space": "", "init": str(supernet), "lr": 1e-3, **changes}
    trainer = Trainer(config(npz, output, **settings))
    trainer.run()
    return trainer


def test_a_run_goes_on_and_is_resumed(npz: Path, supernet: Path, tmp_path: Path) -> None:
    one = going_on(npz, tmp_path / "one", supernet, epochs=1, drop_path=0.1, sampling="sandwich")
    again = load_model(supernet)
    assert one.model.space == again.space and one.model.net.config.layer_order == again.net.config.layer_order
    assert one.model.net.config.drop_path == 0.1
    assert resolve_model_data_config(one.model)["mean"] == (0.2, 0.2, 0.2)
    whole = going_on(npz, tmp_path / "whole", supernet)
    parts = Trainer(config(npz, tmp_path / "parts", model="", search_space="", init=str(supernet), lr=1e-3))
    parts.history.append({"epoch": 0, "train_loss": parts.train_epoch(), **parts.validate()})
    parts.epoch = 1
    parts.save(tmp_path / "parts" / "last.pt")
    torch.rand(3)
    resumed = going_on(npz, tmp_path / "parts", supernet)
    assert resumed.history == whole.history
    state = read_checkpoint(tmp_path / "whole" / "last.pt")
    assert state["arch"] == "elastic_vit"
    opened: Any = HOST.open(tmp_path / "whole" / "last.pt")
    smallest = opened.space.smallest()
    assert opened.evaluate(smallest)["loss"] == pytest.approx(
        whole.history[-1]["subnets"]["smallest"]["loss"], abs=1e-4
    )
    opened.extract(smallest, tmp_path / "subnet.pt")
    static = going_on(npz, tmp_path / "static", tmp_path / "subnet.pt", epochs=1)
    assert not static.model.is_supernet and static.model.architecture["layers"] == smallest["layers"]


def test_what_a_file_says_itself_is_not_said_again(npz: Path, supernet: Path, tmp_path: Path) -> None:
    for name, value in (("subnet", "a.json"), ("mos", "neuron"), ("search_space", "mformer_cifar10_small")):
        with pytest.raises(ConfigError, match=f"--{name.replace('_', '-')} without --model"):
            config(npz, tmp_path / "run", **{"model": "", "search_space": "", "init": str(supernet), name: value})
    with pytest.raises(ConfigError, match="neither --model nor --init"):
        config(npz, tmp_path / "run", model="", search_space="")
    elastic(vit(num_classes=3), out=tmp_path / "three.pt")
    with pytest.raises(ConfigError, match="for 3 classes, the images have 2"):
        going_on(npz, tmp_path / "run", tmp_path / "three.pt")


def test_timm_builds_it_by_name(supernet: Path) -> None:
    model = timm.create_model("elastic_vit", elastic=str(supernet), drop_path_rate=0.2, num_classes=2)
    taken = load_model(supernet)
    assert torch.equal(model.eval()(images(vit())), taken(images(vit())))
    assert model.net.config.drop_path == 0.2
    assert resolve_model_data_config(model)["mean"] == (0.2, 0.2, 0.2)
    other = timm.create_model("elastic_vit", elastic=str(supernet), num_classes=5, img_size=64).eval()
    assert other(torch.zeros(1, 3, 64, 64)).shape == (1, 5)
    with pytest.raises(ConfigError, match="give elastic=FILE"):
        timm.create_model("elastic_vit")
    with pytest.raises(ConfigError, match="which says it itself"):
        timm.create_model("elastic_vit", elastic=str(supernet), class_token=False)
    with pytest.raises(ConfigError, match="images of 3 channels"):
        timm.create_model("elastic_vit", elastic=str(supernet), in_chans=1)


def saved(model: Any, path: Path, file: str) -> Path:
    """As timm's trainer does, whose options name a file as they were given."""
    args = argparse.Namespace(
        model="elastic_vit", img_size=None, in_chans=None, gp=None, model_kwargs={"elastic": file}
    )
    average = ModelEmaV3(model, decay=0.5)
    average.update(model)
    state = {"state_dict": model.state_dict(), "state_dict_ema": average.module.state_dict()}
    torch.save({"arch": "elastic_vit", **state, "args": args}, path)
    return path


def test_what_timms_trainer_saves_needs_no_file_beside_it(
    supernet: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(supernet.parent)
    model = timm.create_model("elastic_vit", elastic=supernet.name, drop_path_rate=0.1,
                              pretrained_cfg_overlay={"mean": (0.3, 0.3, 0.3)}).eval()  # fmt: skip
    path = saved(model, tmp_path / "last.pth.tar", supernet.name)
    monkeypatch.chdir(tmp_path)
    again = load_model(path)
    assert torch.equal(again(images(vit())), model(images(vit())))
    assert again.net.config.layer_order == model.net.config.layer_order
    assert resolve_model_data_config(again)["mean"] == (0.3, 0.3, 0.3)
    further = timm.create_model("elastic_vit", elastic=str(path)).eval()
    assert torch.equal(further(images(vit())), model(images(vit())))
    with pytest.raises(DataError, match=r"no file supernet.pt for elastic=supernet.pt .* --model-kwargs"):
        timm.create_model("elastic_vit", elastic=supernet.name)
    state = torch.load(path, weights_only=False)
    for name in ("state_dict", "state_dict_ema"):
        del state[name]["settings_of_file"]
    torch.save(state, tmp_path / "other.pth.tar")
    with pytest.raises(CheckpointError, match="the argument 'elastic'"):
        load_model(tmp_path / "other.pth.tar")
    state["args"].model_kwargs = "elastic"
    torch.save(state, tmp_path / "other.pth.tar")
    with pytest.raises(CheckpointError, match="cannot be built"):
        load_model(tmp_path / "other.pth.tar")


def test_weights_of_another_file_are_refused(supernet: Path, tmp_path: Path) -> None:
    """The same shapes in another order of layers would compute something else."""
    own = read_checkpoint(supernet)
    order = own["nas_ext_image"]["arguments"]["layer_order"]
    own["nas_ext_image"]["arguments"]["layer_order"] = tuple(reversed(order))
    torch.save(own, tmp_path / "other.pt")
    one = timm.create_model("elastic_vit", elastic=str(supernet), drop_path_rate=0.1)
    other = timm.create_model("elastic_vit", elastic=str(tmp_path / "other.pt"))
    for network in (other, copy.deepcopy(other)):  # as of moving averages
        with pytest.raises(CheckpointError, match="layer_order differ"):
            network.load_state_dict(one.state_dict())
    timm.create_model("elastic_vit", elastic=str(supernet)).load_state_dict(one.state_dict())
    one.load_state_dict(own["state_dict"])
    save_checkpoint(tmp_path / "again.pt", one)
    assert load_model(tmp_path / "again.pt").space == one.space


def test_what_timms_trainer_saves_is_opened(supernet: Path, npz: Path, tmp_path: Path) -> None:
    kwargs = {"elastic": str(supernet)}
    model = timm.create_model("elastic_vit", **kwargs)
    args = argparse.Namespace(model="elastic_vit", img_size=None, in_chans=None, gp=None, model_kwargs=kwargs)
    torch.save({"arch": "elastic_vit", "state_dict": model.state_dict(), "args": args}, tmp_path / "last.pth.tar")
    opened = HOST.open(tmp_path / "last.pth.tar", data=str(npz))
    assert opened.space == model.space and opened.evaluate(opened.space.smallest())["loss"] > 0
