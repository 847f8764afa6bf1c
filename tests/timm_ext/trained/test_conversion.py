"""A trained vision transformer is the largest network of its supernet: outputs, gradients, extraction, files."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import timm
import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from timm.data import resolve_model_data_config
from torch import Tensor

from nas_core.space import Architecture
from nas_core.space.image import image_space
from nas_core.supernet import Supernet
from nas_core.supernet.elastic.conversion import TOLERANCE, Trained, convert
from tests.contracts.elastic_source import ElasticSourceContract
from tests.timm_ext.running import train
from tests.timm_ext.trained.tiny import FORMS, SIZES, images, save, vit
from timm_ext import elastic, load_model, write_subnet
from timm_ext.host import HOST, ImageSupernet
from timm_ext.trained.conversion import space_around
from timm_ext.trained.reading import read_source
from timm_ext.trained.vit import architecture_of, state_of, unsupported


class OfTimm(ElasticSourceContract):
    """The fixtures of one form of :data:`tests.timm_ext.trained.tiny.FORMS`."""

    form: str

    @pytest.fixture
    def checkpoint(self, npz: Path, tmp_path: Path) -> Path:
        return save(vit(**FORMS[self.form]), tmp_path / "trained.pth.tar", **FORMS[self.form])

    @pytest.fixture(autouse=True)
    def _data(self, npz: Path) -> None:
        self.data = str(npz)

    def host_gradients(self, trained: Trained, batch: Any) -> Mapping[str, Tensor]:
        """Those of timm's model, moved into the elastic network as its weights are."""
        model = trained.source.model  # type: ignore[attr-defined]
        images, labels = batch
        model.zero_grad()
        F.cross_entropy(model(images), labels).backward()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.copy_(parameter.grad)
        state = state_of(model, trained.space)
        if model.patch_embed.proj.bias is None:  # ours has one, which every patch's position adds to
            state["patch_embed.bias"] = state["positions"][model.num_prefix_tokens :].sum(0)
        return state

    def open_static(self, path: Path) -> Supernet:
        return HOST.open_exportable(path)

    def trained_further(self, supernet: Path, folder: Path) -> Path:
        train(Path(str(self.data)), folder, model="", search_space="", init=str(supernet), updates=2, lr=1e-3)
        return folder / "last.pt"

    def output(self, supernet: Supernet, architecture: Any) -> Tensor:
        assert isinstance(supernet, ImageSupernet)
        model = load_model(supernet.path)
        x = torch.randn(2, 3, 32, 32, generator=torch.Generator().manual_seed(4))
        with torch.no_grad(), model.use_architecture(architecture):
            return model(x)


class TestClip(OfTimm):
    form = "clip"


def difference(output: Tensor, expected: Tensor) -> float:
    return float((output - expected).abs().max() / expected.abs().max())


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
    by_weight = elastic(model, out=tmp_path / "supernet.pt")
    assert difference(by_weight(x), expected) < TOLERANCE
    reloaded = load_model(tmp_path / "supernet.pt")
    assert torch.equal(reloaded(x), by_weight(x)) and reloaded.settings() == by_weight.settings()
    smallest = reloaded.space.smallest()
    write_subnet(reloaded, smallest, tmp_path / "subnet.safetensors")
    with reloaded.use_architecture(smallest):
        assert difference(load_model(tmp_path / "subnet.safetensors")(x), reloaded(x)) < TOLERANCE


@pytest.mark.parametrize("changes", [{}, {"no_embed_class": True, "reg_tokens": 2}])
def test_images_of_other_sizes(changes: dict[str, Any]) -> None:
    """Positions are interpolated as timm does, to larger and to smaller grids."""
    model = vit(dynamic_img_size=True, **changes)
    supernet = elastic(model)
    for size in ((16, 16), (24, 40), (64, 64)):
        x = torch.randn(2, 3, *size, generator=torch.Generator().manual_seed(2))
        assert difference(supernet(x), model(x)) < TOLERANCE


def test_subnets_keep_what_matters() -> None:
    """Hidden units and heads that do nothing are dropped first."""
    model = vit()
    with torch.no_grad():
        for block in model.blocks:
            block.mlp.fc1.weight[:32] = block.mlp.fc1.bias[:32] = 0
            block.mlp.fc2.weight[:, :32] = 0
            block.attn.qkv.weight.view(3, 4, 8, 32)[:, :2] = 0
            block.attn.qkv.bias.view(3, 4, 8)[:, :2] = 0
            block.attn.proj.weight[:, :16] = 0
    supernet = elastic(model)
    half = Architecture({**supernet.space.largest(), "ffn_dim": (32,) * 3, "heads": (2,) * 3})
    with supernet.use_architecture(half):
        assert difference(supernet(images(model)), model(images(model))) < TOLERANCE


def test_a_checkpoint_of_timms_trainer(npz: Path, tmp_path: Path) -> None:
    model, path, out = vit(), tmp_path / "trained.pth.tar", tmp_path / "supernet.pt"
    trained = HOST.open_trained(save(model, path), data=str(npz), attention=("linear",), calibration_batches=1)
    done = convert(trained, out, importance_by="activation", calibration_batches=1, fit_steps=2)
    assert done.difference < TOLERANCE and done.batches == 1
    supernet = HOST.open(out, data=str(npz))
    assert supernet.space.choice("attention").options[0] == ("softmax", "linear")
    assert supernet.evaluate(supernet.space.smallest())["loss"] > 0
    assert supernet.task["activation"] == "gelu"
    assert difference(load_model(out)(images(model)), model(images(model))) < TOLERANCE


def test_images_are_prepared_as_the_trained_model_wants(tmp_path: Path) -> None:
    model = vit(pretrained_cfg_overlay={"mean": (0.1, 0.2, 0.3), "std": (0.4, 0.5, 0.6), "crop_pct": 0.9})
    elastic(model, out=tmp_path / "supernet.pt")
    actual, expected = map(resolve_model_data_config, (load_model(tmp_path / "supernet.pt"), model))
    for name in ("mean", "std", "crop_pct", "interpolation"):
        assert actual[name] == expected[name]
    assert actual["input_size"] == (3, 32, 32)
    opened: Any = HOST.open(tmp_path / "supernet.pt")
    assert opened.exportable(opened.space.smallest()).info["mean"] == [0.1, 0.2, 0.3]


def test_spaces() -> None:
    model = vit()
    assert space_around(architecture_of(model)).largest() == architecture_of(model)
    custom_space = image_space(
        "own", layers=(2, 3), embed_dims=(24, 32), ffn_dims=(32, 64), heads=(2, 4), head_dim=8,
        image_size=32, patch_size=8, relative_clip=0,
    )  # fmt: skip
    assert elastic(model, space=custom_space).space == custom_space


def test_files_of_weights(tmp_path: Path) -> None:
    """Named by the file, and by the hub's description next to it."""
    model = vit(img_size=224, patch_size=16, embed_dim=192, depth=12, num_heads=3, mlp_ratio=4, num_classes=1000)
    torch.save({"model": {f"module.{name}": one for name, one in model.state_dict().items()}},
               tmp_path / "vit_tiny_patch16_224.pth")  # fmt: skip
    source = read_source(tmp_path / "vit_tiny_patch16_224.pth")
    assert source.name == "vit_tiny_patch16_224"
    assert torch.equal(source.model(images(model)), model(images(model)))
    small = vit()
    save_file(small.state_dict(), tmp_path / "model.safetensors")
    arguments = {name: value for name, value in SIZES.items() if name != "num_classes"}
    content = {"architecture": "vit_tiny_patch16_224", "num_classes": 2, "model_args": arguments}
    (tmp_path / "config.json").write_text(json.dumps({**content, "pretrained_cfg": {"mean": [0.1, 0.1, 0.1]}}))
    hub = read_source(tmp_path / "model.safetensors")
    assert torch.equal(hub.model(images(small)), small(images(small))) and hub.prepared["mean"] == [0.1, 0.1, 0.1]


@pytest.mark.parametrize(
    ("changes", "options"),
    [
        ({"dynamic_img_size": True, "img_size": 48}, {"img_size": 24}),
        ({"no_embed_class": True, "reg_tokens": 2}, {"img_size": None}),
        ({"in_chans": 1}, {"input_size": [1, 32, 32]}),
        ({"num_classes": 0, "in_chans": 2}, {"img_size": 64, "num_classes": 0}),
    ],
)
def test_sizes_come_from_the_weights(changes: dict[str, Any], options: dict[str, Any], tmp_path: Path) -> None:
    model, path = vit(**changes), tmp_path / "last.pth.tar"
    kwargs = {name: value for name, value in {**SIZES, **changes}.items()
              if name not in ("img_size", "in_chans", "num_classes")}  # fmt: skip
    args = argparse.Namespace(model="vit_tiny_patch16_224", model_kwargs=kwargs, **options)
    torch.save({"arch": args.model, "state_dict": model.state_dict(), "args": args}, path)
    for required in (True, False):
        assert torch.equal(read_source(path, elastic=required).model(images(model)), model(images(model)))


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("vit_tiny_patch16_224", ""),
        ("vit_base_patch16_clip_quickgelu_224", ""),
        ("vit_base_patch16_siglip_224", "attention as pooling"),
        ("vit_small_patch14_reg4_dinov2", ""),
        ("vit_giant_patch14_dinov2", "gated hidden units"),
        ("vit_base_patch16_xp_224", "layers of"),
        ("vit_small_patch16_18x2_224", "layers of ParallelThingsBlock"),
        ("deit3_small_patch16_224", ""),
        ("deit_tiny_distilled_patch16_224", "distillation token"),
        ("beit_base_patch16_224", "it is a Beit, with relative position biases"),
        ("vit_tiny_r_s16_p8_224", "patches by"),
        ("flexivit_small", ""),
        ("resnet18", "it is a ResNet"),
    ],
)
def test_supported_models(name: str, reason: str) -> None:
    with torch.device("meta"):
        reasons = unsupported(timm.create_model(name))
    assert bool(reasons) == bool(reason) and reason in "; ".join(reasons), reasons
