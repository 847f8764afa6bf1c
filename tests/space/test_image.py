"""Spaces of image transformers, what a layer of an architecture is, and the published networks."""

from __future__ import annotations

from typing import Any

import pytest

from nas_core.errors import ArchitectureError, UnknownChoiceError
from nas_core.space import (
    Architecture,
    SearchSpace,
    get_space,
    image_architecture,
    image_space,
    list_image_architectures,
    static_image_space,
)
from nas_core.space.image import image_layers, token_grid
from nas_core.space.stack import TransformerLayer
from tests.contracts.space import SpaceContract


class TestMformerCifar10(SpaceContract):
    def make(self) -> SearchSpace:
        return get_space("mformer_cifar10")


class TestAutoformerS(SpaceContract):
    def make(self) -> SearchSpace:
        return get_space("autoformer_s")


class TestTiny(SpaceContract):
    """Few enough architectures to enumerate."""

    def make(self) -> SearchSpace:
        return image_space(
            "tiny",
            layers=(1, 2),
            embed_dims=(8, 12),
            ffn_dims=(8, 16),
            heads=(1, 2),
            head_dim=4,
            image_size=8,
            patch_size=4,
            attention=("softmax", "linear"),
        )


def test_sizes_of_the_papers_space() -> None:
    space = get_space("mformer_cifar10")
    assert space.cardinality() == 3 * sum(30**layers for layers in (12, 13, 14))
    assert f"{space.cardinality():.1e}" == "1.5e+21"
    without = SearchSpace("softmax", [c for c in space.choices if c.name != "attention"], space.fixed)
    assert f"{without.cardinality():.1e}" == "9.4e+16"


def test_the_largest_is_all_softmax_and_the_smallest_all_linear() -> None:
    space = get_space("mformer_cifar10_small")
    assert space.largest()["attention"] == ("softmax",) * 6
    assert space.smallest()["attention"] == ("linear",) * 4
    assert get_space("vit_cifar10_small").largest()["attention"] == "softmax"


def test_layers_of_an_architecture() -> None:
    genes: dict[str, Any] = {"layers": 2, "embed_dim": 320, "heads": (5, 7), "head_dim": 64}
    plain = Architecture({**genes, "ffn_dim": (672, 896), "attention": ("linear", "softmax")})
    assert image_layers(plain) == (TransformerLayer(672, 5, 320, "linear"), TransformerLayer(896, 7, 448, "softmax"))
    ratios = Architecture({**genes, "mlp_ratio": (3.5, 4.0)})
    assert image_layers(ratios) == (
        TransformerLayer(1120, 5, 320, "softmax"),
        TransformerLayer(1280, 7, 448, "softmax"),
    )


def test_grids() -> None:
    architecture = get_space("mformer_cifar10").largest()
    assert (token_grid(architecture), token_grid(architecture, 384)) == (14, 24)
    with pytest.raises(ArchitectureError, match="230 pixels do not divide into patches of 16"):
        token_grid(architecture, 230)


@pytest.mark.parametrize("name", ["mformer_cifar10", "autoformer_s", "vit_cifar10_small"])
def test_the_space_of_one_architecture(name: str) -> None:
    space = get_space(name)
    architecture = space.smallest()
    static = static_image_space(architecture)
    assert static.cardinality() == 1
    assert static.largest() == architecture
    assert image_layers(static.largest()) == image_layers(architecture)


def test_published_networks() -> None:
    space = get_space("mformer_cifar10")
    sums = {"cosformer_star_cifar10": (12, 448, 17_024, 75), "mformer_like_cifar10": (12, 384, 14_784, 76)}
    for name, (layers, width, ffn, heads) in sums.items():
        found = image_architecture(name)
        assert found in space
        assert (found["layers"], found["embed_dim"]) == (layers, width)
        assert (sum(found.numbers("ffn_dim")), sum(found.numbers("heads"))) == (ffn, heads)
    linear = [
        layer
        for layer, kind in enumerate(image_architecture("mformer_like_cifar10")["attention"], 1)
        if kind == "linear"
    ]  # type: ignore[arg-type]
    assert linear == [3, 7, 11]
    assert image_architecture("subnet_s_cifar10").number("layers") == 13
    for name in list_image_architectures():
        assert len(image_layers(image_architecture(name))) == image_architecture(name)["layers"]
    with pytest.raises(UnknownChoiceError, match="Did you mean 'vanilla_linear_cifar10'"):
        image_architecture("vanilla_linear")
