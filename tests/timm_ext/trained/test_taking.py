"""A trained vision transformer is the largest network of its supernet: outputs, gradients, extraction, files."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from timm.data import resolve_model_data_config
from torch import Tensor

from nas_core.errors import CheckpointError, ConfigError, DataError, SpaceError
from nas_core.space import image_space
from nas_core.supernet.elastic.importance import CRITERIA
from nas_core.supernet.elastic.take_over import TOLERANCE, take_over
from tests.timm_ext.trained.tiny import FORMS, SIZES, images, save, vit
from timm_ext import load_model, write_subnet
from timm_ext.checkpoint import save_checkpoint
from timm_ext.host import HOST
from timm_ext.model import VisionModel
from timm_ext.trained.reading import read_source, source_of
from timm_ext.trained.taking import TrainedViT, elastic, space_around
from timm_ext.trained.weights import architecture_of


def difference(got: Tensor, expected: Tensor) -> float:
    return float((got - expected).abs().max() / expected.abs().max())


@pytest.mark.parametrize("form", FORMS)
def test_the_largest_network_is_the_trained_one(form: str, tmp_path: Path) -> None:
    model = vit(**FORMS[form])
    supernet = elastic(model, importance_by="none")
    x = images(model)
    expected, features = model(x), model.forward_features(x)
    assert supernet.is_supernet and not supernet.training
    assert difference(supernet(x), expected) < TOLERANCE
    assert difference(supernet.forward_features(x), features) < TOLERANCE
    assert difference(supernet.forward_head(features), expected) < TOLERANCE
    assert difference(supernet.forward_intermediates(x)[0], model.forward_intermediates(x)[0]) < TOLERANCE
    sorted_one = elastic(model, out=tmp_path / "supernet.pt")
    assert difference(sorted_one(x), expected) < TOLERANCE
    again = load_model(tmp_path / "supernet.pt")
    assert torch.equal(again(x), sorted_one(x))
    assert again.settings() == sorted_one.settings()
    smallest = again.space.smallest()
    write_subnet(again, smallest, tmp_path / "subnet.safetensors")
    with again.using(smallest):
        assert difference(load_model(tmp_path / "subnet.safetensors")(x), again(x)) < TOLERANCE


@pytest.mark.parametrize("changes", [{}, {"no_embed_class": True, "reg_tokens": 2}])
def test_images_of_other_sizes(changes: dict[str, Any]) -> None:
    """Positions are interpolated as timm does, to larger and to smaller grids."""
    model = vit(dynamic_img_size=True, **changes)
    supernet = elastic(model)
    for size in ((16, 16), (24, 40), (64, 64)):
        x = torch.randn(2, 3, *size, generator=torch.Generator().manual_seed(2))
        assert difference(supernet(x), model(x)) < TOLERANCE


@pytest.mark.parametrize("form", ["vit", "deit3", "clip", "no class token"])
def test_gradients_are_the_trained_networks(form: str) -> None:
    """Of the images, and of weights that are nowhere folded."""
    model = vit(**FORMS[form])
    supernet = elastic(model, importance_by="none")
    ours, theirs = images(model).requires_grad_(), images(model).requires_grad_()
    supernet(ours).square().sum().backward()
    model(theirs).square().sum().backward()
    assert ours.grad is not None and theirs.grad is not None
    assert difference(ours.grad, theirs.grad) < 1e-4
    layer, block = supernet.net.layers[1], model.blocks[1]
    pairs = [(layer.self_attn.in_proj.weight, block.attn.qkv.weight), (layer.ffn.fc1.bias, block.mlp.fc1.bias)]
    for own, other in pairs:
        assert own.grad is not None and difference(own.grad, other.grad) < 1e-4


@pytest.mark.parametrize("importance_by", CRITERIA)
def test_any_criterion_leaves_the_largest_alone(importance_by: str, npz: Path, tmp_path: Path) -> None:
    model = vit()
    calibrate = 1 if importance_by in ("activation", "gradient") else 0
    supernet = elastic(model, importance_by=importance_by, data=npz, calibrate=calibrate, mos="neuron")
    assert difference(supernet(images(model)), model(images(model))) < TOLERANCE
    order = supernet.net.config.layer_order
    assert (sorted(order) == [0, 1, 2]) if calibrate else (order == ())
    save_checkpoint(tmp_path / "supernet.pt", supernet, epoch=0)
    again = load_model(tmp_path / "supernet.pt")
    assert again.net.config.layer_order == order
    shallow = again.space.smallest()
    write_subnet(again, shallow, tmp_path / "subnet.pt")
    with again.using(shallow):
        assert difference(load_model(tmp_path / "subnet.pt")(images(model)), again(images(model))) < TOLERANCE


def test_subnets_keep_what_matters() -> None:
    """Hidden units, heads and channels that do nothing are left out first."""
    model = vit()
    with torch.no_grad():
        for block in model.blocks:
            block.mlp.fc1.weight[:32] = block.mlp.fc1.bias[:32] = 0
            block.mlp.fc2.weight[:, :32] = 0
            block.attn.qkv.weight.view(3, 4, 8, 32)[:, :2] = 0
            block.attn.qkv.bias.view(3, 4, 8)[:, :2] = 0
            block.attn.proj.weight[:, :16] = 0
    supernet = elastic(model)
    half = {**supernet.space.largest(), "ffn_dim": (32,) * 3, "heads": (2,) * 3}
    with supernet.using(type(supernet.space.largest())(half)):
        assert difference(supernet(images(model)), model(images(model))) < TOLERANCE


def test_a_checkpoint_of_timms_trainer(npz: Path, tmp_path: Path) -> None:
    model, path, out = vit(), tmp_path / "trained.pth.tar", tmp_path / "supernet.pt"
    save(model, path)
    assert HOST.recognises(path)
    trained = HOST.open_trained(path, data=str(npz), space="auto", attention=("linear",), calibrate=1, device="cpu")
    done = take_over(trained, out, importance_by="activation", calibrate=1)
    assert done.difference < TOLERANCE and done.batches == 1
    supernet = HOST.open(out, data=str(npz))
    assert supernet.space.choice("attention").options[0] == ("softmax", "linear")
    assert supernet.space.largest()["attention"] == ("softmax",) * 3
    assert supernet.evaluate(supernet.space.smallest())["loss"] > 0
    assert supernet.task["activation"] == "gelu"
    assert difference(load_model(out)(images(model)), model(images(model))) < TOLERANCE
    with pytest.raises(CheckpointError, match="nas-ext elastic"):
        HOST.open(path)
    with pytest.raises(ConfigError, match="exists"):
        take_over(trained, out)


def test_images_are_prepared_as_the_trained_model_wants(tmp_path: Path) -> None:
    model = vit(pretrained_cfg_overlay={"mean": (0.1, 0.2, 0.3), "std": (0.4, 0.5, 0.6), "crop_pct": 0.9})
    expected = resolve_model_data_config(model)
    elastic(model, out=tmp_path / "supernet.pt")
    supernet = load_model(tmp_path / "supernet.pt")
    found = resolve_model_data_config(supernet)
    assert {name: found[name] for name in ("mean", "std", "crop_pct", "interpolation")} == {
        name: expected[name] for name in ("mean", "std", "crop_pct", "interpolation")
    }
    assert found["input_size"] == (3, 32, 32)
    opened: Any = HOST.open(tmp_path / "supernet.pt")
    assert opened.exportable(opened.space.smallest()).info["mean"] == [0.1, 0.2, 0.3]


def test_spaces() -> None:
    model = vit()
    trained = architecture_of(model)
    auto = space_around(trained)
    assert auto.largest() == trained
    own = image_space(
        "own", layers=(2, 3), embed_dims=(24, 32), ffn_dims=(32, 64), heads=(2, 4), head_dim=8,
        image_size=32, patch_size=8, relative_clip=0,
    )  # fmt: skip
    assert elastic(model, space=own).space == own
    with pytest.raises(SpaceError, match=r"has embed_dim 40, the trained one 32"):
        wide = image_space(
            "wide", layers=(2, 3), embed_dims=(32, 40), ffn_dims=(32, 64), heads=(2, 4), head_dim=8,
            image_size=32, patch_size=8, relative_clip=0,
        )  # fmt: skip
        elastic(model, space=wide)
    with pytest.raises(ConfigError, match="name them in the space"):
        elastic(model, space=own, attention=("linear",), fit_steps=0)


def test_wrong_input_is_one_line(npz: Path, tmp_path: Path) -> None:
    model = vit()
    (tmp_path / "text.pt").write_text("text")
    (tmp_path / "cut.safetensors").write_bytes(b"cut")
    torch.save(model.state_dict(), tmp_path / "weights.pt")
    torch.save({"arch": "vit_nobody", "state_dict": model.state_dict()}, tmp_path / "nobody.pt")
    torch.save({"arch": "vit_tiny_patch16_224", "state_dict": model.state_dict()}, tmp_path / "other.pt")
    options = argparse.Namespace(model="vit_tiny_patch16_224", model_kwargs={"img_size": {}})
    torch.save({"arch": "vit_tiny_patch16_224", "args": options, "state_dict": model.state_dict()}, tmp_path / "odd.pt")
    elastic(model, out=tmp_path / "supernet.pt")
    save(vit(num_classes=3), tmp_path / "three.pt", num_classes=3)
    cases = {
        "absent.pt": "no file",
        "text.pt": "cannot be read",
        "cut.safetensors": "cannot be read",
        "weights.pt": "not the name of their model",
        "nobody.pt": "timm does not know",
        "other.pt": "does not fit timm's vit_tiny_patch16_224",
        "odd.pt": "cannot be built",
        "supernet.pt": "is of timm_ext already",
    }
    for name, said in cases.items():
        with pytest.raises((CheckpointError, DataError), match=said) as caught:
            elastic(tmp_path / name)
        assert "\n" not in str(caught.value)
    with pytest.raises(DataError, match="no images to calibrate on"):
        HOST.open_trained(tmp_path / "three.pt", data=None, space="auto", attention=(), calibrate=1, device="cpu")
    with pytest.raises(DataError, match="has 2 classes"):
        elastic(tmp_path / "three.pt", data=npz, calibrate=1, importance_by="activation")
    with pytest.raises(ConfigError, match="has no classifier"):
        elastic(vit(num_classes=0), calibrate=1, importance_by="activation", data=npz)


def test_files_of_weights(tmp_path: Path) -> None:
    """By the name of the file, and by the hub's description beside it."""
    model = vit(img_size=224, patch_size=16, embed_dim=192, depth=12, num_heads=3, mlp_ratio=4, num_classes=1000)
    torch.save({"model": {f"module.{name}": one for name, one in model.state_dict().items()}},
               tmp_path / "vit_tiny_patch16_224.pth")  # fmt: skip
    found = read_source(tmp_path / "vit_tiny_patch16_224.pth")
    assert found.name == "vit_tiny_patch16_224"
    assert torch.equal(found.model(images(model)), model(images(model)))
    small = vit()
    save_file(small.state_dict(), tmp_path / "model.safetensors")
    described = {**SIZES}
    described.pop("num_classes")
    content = {"architecture": "vit_tiny_patch16_224", "num_classes": 2, "model_args": described}
    (tmp_path / "config.json").write_text(json.dumps({**content, "pretrained_cfg": {"mean": [0.1, 0.1, 0.1]}}))
    hub = read_source(tmp_path / "model.safetensors")
    assert torch.equal(hub.model(images(small)), small(images(small))) and hub.prepared["mean"] == [0.1, 0.1, 0.1]
    (tmp_path / "config.json").write_text("[]")
    with pytest.raises(CheckpointError, match="no description"):
        read_source(tmp_path / "model.safetensors")


def _saved(path: Path, model: Any, kwargs: Any, **options: Any) -> Path:
    """As timm's trainer does, with what else it may be started with."""
    args = argparse.Namespace(model="vit_tiny_patch16_224", model_kwargs=kwargs, **options)
    torch.save({"arch": args.model, "state_dict": model.state_dict(), "args": args}, path)
    return path


@pytest.mark.parametrize(
    ("changes", "options"),
    [
        ({"dynamic_img_size": True, "img_size": 48}, {"img_size": 24}),
        ({"no_embed_class": True, "reg_tokens": 2}, {"img_size": None}),
        ({"in_chans": 1}, {"input_size": [1, 32, 32]}),
        ({"num_classes": 0, "in_chans": 2}, {"img_size": 64, "num_classes": 0}),
    ],
)
def test_the_weights_say_what_the_options_do_not(
    changes: dict[str, Any], options: dict[str, Any], tmp_path: Path
) -> None:
    model = vit(**changes)
    kwargs = {name: value for name, value in {**SIZES, **changes}.items()
              if name not in ("img_size", "in_chans", "num_classes")}  # fmt: skip
    path = _saved(tmp_path / "last.pth.tar", model, kwargs, **options)
    for wanted in (True, False):
        assert torch.equal(read_source(path, elastic=wanted).model(images(model)), model(images(model)))


def test_damaged_settings_are_one_line(tmp_path: Path) -> None:
    model = vit()
    told = {name: json.dumps(SIZES) for name in ("model_kwargs", "pretrained_cfg")}
    cases = [{"model_kwargs": "{"}, {"model_kwargs": "[1]"}, {"pretrained_cfg": '"text"'}]
    paths = []
    for index, wrong in enumerate(cases):
        paths.append(tmp_path / f"{index}.safetensors")
        metadata = {"arch": "vit_tiny_patch16_224", **told, **wrong}
        save_file(model.state_dict(), paths[-1], metadata)
    paths.append(_saved(tmp_path / "text.pth", model, "img_size=32"))
    about = {"arch": "vit_tiny_patch16_224", "model_kwargs": SIZES, "pretrained_cfg": "text"}
    torch.save({"state_dict": model.state_dict(), **about}, tmp_path / "configuration.pth")
    for path in (*paths, tmp_path / "configuration.pth"):
        with pytest.raises(CheckpointError, match="has damaged settings of its model") as caught:
            read_source(path)
        assert "\n" not in str(caught.value)


def test_padded_images_are_refused_by_name() -> None:
    with pytest.raises(CheckpointError, match="dynamic_img_pad"):
        elastic(vit(dynamic_img_size=True, dynamic_img_pad=True))


def test_the_callers_model_stays_as_it_is() -> None:
    model = vit().to(torch.bfloat16).train()
    supernet = elastic(model)
    assert model.training and all(one.training for one in model.modules()) and not supernet.training
    assert {one.dtype for one in model.parameters()} == {torch.bfloat16}


def test_the_trained_model_is_left_alone() -> None:
    model = vit()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    trained = TrainedViT(source_of(model))
    assert isinstance(trained.supernet, VisionModel) and trained.difference(trained.net) < TOLERANCE
    with torch.no_grad():
        trained.net.positions[0, 0] += 1
    assert trained.difference(trained.net) > TOLERANCE
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
