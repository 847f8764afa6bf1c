"""What timm's helpers ask of a model: features, attention, pooling, image sizes; served, or refused in a sentence."""

from __future__ import annotations

from typing import Any

import pytest
import timm
import torch
import torch.nn.functional as F
from timm.layers import global_pool_nlc
from timm.models import create_feature_extractor
from timm.utils.attention_extract import AttentionExtract

from nas_core.errors import CheckpointError, ConfigError, NasExtError, UnknownChoiceError
from nas_core.layers.vision import _attention, attention_weights  # private: what a layer itself computes  # noqa: PLC2701
from timm_ext.model import VisionModel

NAME = "mformer_cifar10_small"


def images(size: int = 32) -> torch.Tensor:
    return torch.randn(2, 3, size, size, generator=torch.Generator().manual_seed(0))


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


def test_extracted_attention_is_what_the_layer_reads() -> None:
    model = timm.create_model(NAME).eval()
    for index, weights in enumerate(model.active_subnet().layers[:3]):  # softmax, softmax, linear
        attention = weights.self_attn
        x = torch.randn(2, 65, 128, generator=torch.Generator().manual_seed(index))
        values = F.linear(x, *attention.in_proj).chunk(3, -1)[2].unflatten(-1, (attention.heads, -1))
        read = (attention_weights(x, attention) @ values.transpose(1, 2)).transpose(1, 2).flatten(2)
        torch.testing.assert_close(
            F.linear(read, *attention.out_proj), _attention(x, attention, 0.0), atol=1e-4, rtol=1e-4
        )


@pytest.mark.parametrize(
    "ask",
    [
        lambda: create_feature_extractor(timm.create_model(NAME), ["net.layers.2"]),
        lambda: AttentionExtract(timm.create_model(NAME)),
        lambda: timm.create_model(NAME, features_only=True, feature_cls="fx"),
        lambda: timm.create_model(NAME, features_only=True, feature_cls="list"),
    ],
)
def test_graphs_are_refused_with_what_works_instead(ask: Any) -> None:
    with pytest.raises(ConfigError, match="features_only=True"):
        ask()


def test_features_only_of_layers_there_are() -> None:
    assert len(timm.create_model(NAME, features_only=True)(images())) == 3
    first, last = timm.create_model(NAME, features_only=True, out_indices=(0, -1))(images())
    model = timm.create_model(NAME, features_only=True, out_indices=(0,), feature_cls="getter")
    assert first.shape == last.shape == model(images())[0].shape == (2, 128, 8, 8)
    for wrong in ((0, 6), (-7,), 0, 7, ()):
        with pytest.raises(ConfigError, match="of a model with 6; expected how many of the last"):
            timm.create_model(NAME, features_only=True, out_indices=wrong)
    with pytest.raises(ConfigError, match="layers 9 of a model with 6"):
        timm.create_model(NAME).forward_intermediates(images(), indices=9)


@pytest.mark.parametrize("pool", ["avg", "max", "avgmax", "token", ""])
def test_pools_are_timms(pool: str) -> None:
    model = timm.create_model(NAME, global_pool=pool, num_classes=0).eval()
    tokens = model.forward_features(images())
    torch.testing.assert_close(model(images()), global_pool_nlc(tokens, pool))
    again = VisionModel.from_settings(model.settings())
    assert again.net.config.pool == pool


@pytest.mark.parametrize("form", ["auto", "chunked", "fla"])
def test_the_form_of_linear_attention_is_kept_and_older_settings_have_none(form: str) -> None:
    model = timm.create_model(NAME, linear_form=form).eval()
    settings = model.settings()
    again = VisionModel.from_settings(settings).eval()
    again.load_state_dict(model.state_dict())
    assert again.net.config.linear_form == form
    torch.testing.assert_close(again(images()), model(images()))
    del settings["arguments"]["linear_form"]
    assert VisionModel.from_settings(settings).net.config.linear_form == "auto"
    with pytest.raises(UnknownChoiceError, match="form of linear attention"):
        timm.create_model(NAME, linear_form="quick")


def test_image_sizes_are_dynamic_or_fixed() -> None:
    for given in ({}, {"dynamic_img_size": True}):
        assert timm.create_model(NAME, **given)(images(48)).shape == (2, 10)
    fixed = VisionModel.from_settings(timm.create_model(NAME, dynamic_img_size=False).settings())
    assert fixed(images()).shape == (2, 10)
    with pytest.raises(ConfigError, match="48 x 48 pixels for a model of 32 x 32; resize them"):
        fixed(images(48))
    fixed.set_input_size(48)
    assert fixed(images(48)).shape == (2, 10)


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        ({"global_pool": "map"}, UnknownChoiceError, r"unknown pooling \(global_pool\) 'map'"),
        ({"dynamic_img_pad": True}, ConfigError, "pad or resize them before"),
        ({"patch_size": 8}, ConfigError, "patch_size=8.*give subnet= or search_space="),
        ({"features_only": True, "output_stride": 16}, ConfigError, "output_stride=16"),
        ({"drop_rates": 0.1}, UnknownChoiceError, "unknown argument of an image model 'drop_rates'.*'drop_rate'"),
    ],
)
def test_other_requests_are_refused_when_the_model_is_built(
    given: dict[str, Any], error: type[NasExtError], said: str
) -> None:
    with pytest.raises(error, match=said):
        timm.create_model(NAME, **given)
    with pytest.raises(ConfigError, match="patch_size=8"):
        timm.create_model(NAME).set_input_size(48, patch_size=8)


def test_settings_of_a_newer_release_are_told() -> None:
    settings = timm.create_model(NAME).settings()
    with pytest.raises(CheckpointError, match=r"misuse an argument .*'tokens'.*upgrade"):
        VisionModel.from_settings({**settings, "arguments": {**settings["arguments"], "tokens": 3}})
