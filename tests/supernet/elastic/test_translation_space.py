"""The space around a trained translation network."""

from __future__ import annotations

import pytest

from nas_core.errors import ConfigError
from nas_core.space import Architecture
from nas_core.supernet.elastic.spaces import rounding
from nas_core.supernet.elastic.translation_space import SideSizes, auto_space, trained_genes

BIG = SideSizes(6, 1024, 4096, 16)


def test_its_largest_network_is_the_trained_one() -> None:
    unequal = SideSizes(12, 512, 2048, 8), SideSizes(2, 256, 1024, 4)
    for sides in (unequal, (BIG, BIG)):
        space = auto_space("around", *sides, 64)
        assert space.largest() == Architecture(trained_genes(*sides, 64))


def test_options_are_the_stated_shares() -> None:
    space = auto_space("around", BIG, BIG, 64)
    assert space.choice("encoder.embed_dim").options == ((1024, 896, 768, 640),)
    assert space.choice("decoder.ffn_dim").options == ((4096, 3072, 2048, 1024),) * 6
    assert space.choice("decoder.cross_heads").options == ((16, 12, 8),) * 6
    assert space.choice("encoder.layers").options == ((6, 5, 4, 3),)
    assert space.choice("decoder.layers").options == ((6, 5, 4, 3, 2, 1),)
    assert space.choice("decoder.arbitrary_cross").options == ((-1,),) * 6
    assert space.fixed == {"qkv_dim": 1024, "head_dim": 64}


def test_layers_may_choose_their_attention_and_the_largest_keeps_softmax() -> None:
    space = auto_space("around", BIG, BIG, 64, ("linear", "softmax", "local"))
    for gene, kinds in (("encoder.self", "linear softmax local"), ("decoder.self", "linear softmax local"),
                        ("decoder.cross", "linear softmax")):  # fmt: skip
        gene = f"{gene}_attention"
        assert set(space.choice(gene).options[0]) == set(kinds.split()), "local attention reads its own side alone"
        assert set(space.largest()[gene]) == {"softmax"}  # type: ignore[arg-type]


def test_softmax_must_be_among_the_kinds() -> None:
    with pytest.raises(ConfigError, match="softmax must be among them"):
        auto_space("around", BIG, BIG, 64, ("linear",))


@pytest.mark.parametrize(("size", "multiple"), [(1024, 16), (512, 16), (128, 16), (96, 8), (64, 8), (16, 2), (7, 1)])
def test_sizes_are_rounded_as_far_as_they_are_wide(size: int, multiple: int) -> None:
    assert rounding(size) == multiple
