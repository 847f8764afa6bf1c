"""Every registered name, as timm's own tests and helpers use models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import timm
import torch
import torch.nn.functional as F
from timm.data import resolve_model_data_config
from timm.utils.attention_extract import AttentionExtract

from nas_core.cli import space as cli
from nas_core.errors import ArchitectureError
from nas_core.layers import MoSLinear
from nas_core.layers.vision import attention_weights, self_attention
from nas_core.models.image.costs import parameters
from nas_core.space import Architecture, get_space
from nas_core.space.image import image_architecture
from tests.timm_ext.running import SPACE, space_file
from timm_ext.model import VisionModel
from timm_ext.models import MODELS, stored_size

NAME = "mformer_cifar10_small"


def images(size: int = 32, channels: int = 3) -> torch.Tensor:
    return torch.randn(2, channels, size, size, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("name", MODELS)
def test_names_are_found_and_configured(name: str) -> None:
    assert name in timm.list_models("*")
    with torch.device("meta"):
        model = timm.create_model(name)
    size = model.space.largest()["image_size"]
    assert resolve_model_data_config(model)["input_size"] == (3, size, size)
    assert model.num_classes == model.pretrained_cfg["num_classes"]
    assert model.is_supernet == name.endswith("supernet")
    assert dict(model.named_modules())[model.pretrained_cfg["classifier"]] is model.get_classifier()
    assert model.pretrained_cfg["first_conv"] + ".weight" in dict(model.named_parameters())
    listed = {name: space for space, names in cli.MODELS.items() for name in names}
    if name in listed:
        is_own = model.space.name == listed[name]
        assert is_own if model.is_supernet else model.space.largest() in get_space(listed[name])


@pytest.mark.parametrize(
    ("name", "printed_m"),
    [("mformer_cifar10", 19.31), ("cosformer_star_cifar10", 24.31), ("vanilla_softmax_cifar10", 19.31)],
)
def test_parameters_of_the_papers_networks(name: str, printed_m: float) -> None:
    with torch.device("meta"):
        model = timm.create_model(name)
    count = sum(p.numel() for p in model.parameters())
    assert count == parameters(model.space.largest())
    positions = model.net.positions.numel()  # which the paper does not count
    assert abs((count - positions) / 1e6 - printed_m) < 0.13  # see nas_core.models.image.costs for what else it counts


@pytest.mark.parametrize("name", [NAME, "mos_vit_cifar10_small_supernet"])
def test_features_head_and_classifier(name: str) -> None:
    model = timm.create_model(name, num_classes=7).eval()
    features, width = model.forward_features(images()), model.num_features
    assert features.shape == (2, 65, width)
    assert model.forward_head(features, pre_logits=True).shape == (2, width)
    assert torch.allclose(model.forward_head(features), model(images()), atol=1e-5)
    model.reset_classifier(4, "token")
    assert (model(images()).shape, model.num_classes) == ((2, 4), 4)
    assert torch.allclose(model.forward_head(features, pre_logits=True), features[:, 0])
    model.reset_classifier(0, "")
    assert model(images()).shape == (2, 65, width)
    reloaded = VisionModel.from_settings(model.settings())
    assert reloaded.net.config.pool == "" and isinstance(reloaded.get_classifier(), torch.nn.Identity)


def test_intermediate_features() -> None:
    model = timm.create_model(NAME).eval()
    final, outputs = model.forward_intermediates(images())
    assert [tuple(output.shape) for output in outputs] == [(2, 128, 8, 8)] * 6
    assert torch.allclose(final, model.forward_features(images()))
    last = model.forward_intermediates(images(), indices=1, norm=True, intermediates_only=True, output_fmt="NLC")
    assert torch.allclose(last[0], final[:, 1:])
    pairs = model.forward_intermediates(images(), [0, -3], True, stop_early=True, intermediates_only=True)
    assert [pair[1].shape for pair in pairs] == [(2, 1, 128)] * 2 and torch.equal(pairs[1][0], outputs[3])
    backbone = timm.create_model(NAME, features_only=True, out_indices=(1, 3))
    assert [tuple(output.shape) for output in backbone(images())] == [(2, 128, 8, 8)] * 2
    assert (backbone.feature_info.channels(), backbone.feature_info.reduction()) == ([128, 128], [4, 4])
    assert len(backbone.model.net.layers) == 4


@pytest.mark.parametrize("name", [NAME, "mos_vit_cifar10_small_supernet"])
def test_attention_is_extracted_by_hooks(name: str) -> None:
    model = timm.create_model(name).eval()
    before = model(images())
    maps = AttentionExtract(model, method="hook")(images())
    heads = [int(number) for number in model.architecture["heads"]]
    assert list(maps) == [f"net.layers.{index}.attn_drop" for index in range(6)]
    assert [tuple(weights.shape) for weights in maps.values()] == [(2, count, 65, 65) for count in heads]
    assert all(torch.allclose(weights.sum(-1), torch.ones(()), atol=1e-5) for weights in maps.values())
    assert torch.equal(model(images()), before)


def test_extracted_attention_is_that_of_the_layer() -> None:
    model = timm.create_model(NAME).eval()
    for index, weights in enumerate(model.active_subnet().layers[:3]):  # softmax, softmax, linear
        attention = weights.self_attn
        x = torch.randn(2, 65, 128, generator=torch.Generator().manual_seed(index))
        values = F.linear(x, *attention.in_proj).chunk(3, -1)[2].unflatten(-1, (attention.heads, -1))
        read = (attention_weights(x, attention) @ values.transpose(1, 2)).transpose(1, 2).flatten(2)
        output = F.linear(read, *attention.out_proj)
        torch.testing.assert_close(output, self_attention(x, attention, None, 0.0), atol=1e-4, rtol=1e-4)


def test_image_sizes_and_channels(tmp_path: Path) -> None:
    model = timm.create_model(NAME).eval()
    free = model(images(48))
    torch.save(model.state_dict(), tmp_path / "model.pt")
    fixed = timm.create_model(NAME, img_size=48, dynamic_img_size=False, checkpoint_path=str(tmp_path / "model.pt"))
    assert fixed.net.positions.shape[0] == 12 * 12 + 1
    model.set_input_size(48)
    for resized in (fixed.eval(), model):
        assert torch.allclose(resized(images(48)), free, atol=1e-5)
        assert resolve_model_data_config(resized)["input_size"] == (3, 48, 48)
    with pytest.raises(Exception, match="32 x 32 pixels; expected 48 x 48"):
        fixed(images())
    assert timm.create_model(NAME, in_chans=1)(images(channels=1)).shape == (2, 10)
    side = VisionModel(SPACE, 3).net.patch_size
    assert stored_size(VisionModel(SPACE, 3, img_size=(2 * side, 3 * side))) == (2 * side, 3 * side)


def test_gradient_checkpointing() -> None:
    model = timm.create_model(NAME)
    gradients = []
    for enable in (False, True):
        model.set_grad_checkpointing(enable)
        model.zero_grad()
        model(images()).square().sum().backward()
        gradients.append(model.net.patch_embed.weight.grad.clone())
    assert torch.allclose(*gradients, atol=1e-4)


def test_subnets_and_spaces_by_argument(tmp_path: Path) -> None:
    architecture, file = SPACE.smallest(), space_file(tmp_path)
    architecture.save(tmp_path / "A.json")
    arguments: list[Any] = [tmp_path / "A.json", str(tmp_path / "A.json"), architecture.to_dict(), architecture]
    for subnet in arguments:
        model = timm.create_model("mformer_cifar10_small_supernet", subnet=subnet)
        assert (model.is_supernet, model.architecture) == (False, architecture)
    assert timm.create_model("mformer_cifar10_small_supernet", search_space=file).space == SPACE
    bare = {name: gene for name, gene in architecture.items() if name not in SPACE.fixed}
    model = timm.create_model("mformer_cifar10_small_supernet", search_space=file, subnet=bare)
    assert model.architecture == architecture


def test_settings_build_an_equal_model() -> None:
    model = timm.create_model(NAME, drop_rate=0.25, num_classes=3).eval()
    reloaded = VisionModel.from_settings(model.settings()).eval()
    reloaded.load_state_dict(model.state_dict())
    assert reloaded.net.config.dropout == 0.25
    torch.testing.assert_close(reloaded(images()), model(images()))


def test_experts() -> None:
    supernet = timm.create_model("mos_vit_cifar10_small_supernet")
    assert any(isinstance(module, MoSLinear) for module in supernet.modules())
    static = timm.create_model("mos_vit_cifar10_small_supernet", subnet=get_space("vit_cifar10_small").smallest())
    assert not any(isinstance(module, MoSLinear) for module in static.modules())
    mixed = timm.create_model("mformer_cifar10_small_supernet", mos="layer", mos_experts=3, mos_router_hidden=16)
    assert {len(m.weight) for m in mixed.modules() if isinstance(m, MoSLinear)} == {3}


def test_supernets_draw_while_training_and_continue_after_loading() -> None:
    def drawn(model: VisionModel, count: int) -> list[Architecture]:
        recorded = []
        for _ in range(count):
            model(images())
            recorded.append(model.architecture)
        return recorded

    model = timm.create_model("mformer_cifar10_small_supernet", architecture_seed=3).train()
    assert drawn(model, 4) == [model.draw(update) for update in range(4)]
    other = timm.create_model("mformer_cifar10_small_supernet", architecture_seed=3).train()
    other.load_state_dict(model.state_dict())
    assert drawn(other, 2) == [model.draw(4), model.draw(5)]
    model.eval()
    assert model.architecture == model.space.largest()
    with model.use_architecture(model.space.smallest(), freeze=True):
        small = model(images())
        assert model.architecture == model.space.smallest()
    assert not torch.allclose(small, model(images())) and int(model.updates) == 4
    with pytest.raises(ArchitectureError), model.use_architecture(image_architecture("cosformer_star_cifar10")):
        pass
