"""Spaces around trained networks, and their specifications."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from examples.plugins.attention import AverageAttention
from nas_core.errors import ConfigError, NasExtError, SpaceError, UnknownChoiceError
from nas_core.layers.attention import ATTENTION_KINDS
from nas_core.space import Architecture, SearchSpace, get_space
from nas_core.supernet.elastic.space_spec import attention_only, check_kinds, is_auto, resolve, space_for, varying
from nas_core.supernet.elastic.spaces import FFN, HEADS, WIDTHS, depths, size_options
from nas_core.supernet.elastic.translation_space import SideSizes, auto_space, trained_genes


def test_options_begin_with_the_trained_size_and_fall() -> None:
    assert size_options(512, WIDTHS, 8) == (512, 448, 384, 320)
    assert size_options(4, HEADS) == (4, 3, 2) and size_options(1, HEADS) == (1,)
    assert size_options(2048, FFN, 64) == (2048, 1536, 1024, 512)
    assert size_options(100, (1.0, 0.8), 64) == (100, 64), "a smaller size is a multiple, the trained one need not be"


def test_depths_go_down_to_the_share() -> None:
    assert depths(6) == (6, 5, 4, 3) and depths(5) == (5, 4, 3) and depths(1) == (1,)
    assert depths(6, 0.01) == (6, 5, 4, 3, 2, 1)


BIG = SideSizes(6, 1024, 4096, 16)


def test_its_largest_network_is_the_trained_one() -> None:
    unequal = SideSizes(12, 512, 2048, 8), SideSizes(2, 256, 1024, 4)
    for sides in (unequal, (BIG, BIG)):
        space = auto_space("around", *sides, 64)
        assert space.largest() == Architecture(trained_genes(*sides, 64))


class _OneSide(AverageAttention):
    """Attention that supports no other sequence."""

    roles = ("encoder", "decoder")


def test_layers_may_choose_their_attention_and_the_largest_keeps_softmax() -> None:
    ATTENTION_KINDS.register("average", _OneSide())
    try:
        space = auto_space("around", BIG, BIG, 64, ("linear", "softmax", "average"))
    finally:
        ATTENTION_KINDS.unregister("average")
    for gene, kinds in (("encoder.self", "linear softmax average"), ("decoder.self", "linear softmax average"),
                        ("decoder.cross", "linear softmax")):  # fmt: skip
        gene = f"{gene}_attention"
        assert set(space.choice(gene).options[0]) == set(kinds.split())
        assert set(space.largest()[gene]) == {"softmax"}  # type: ignore[arg-type]


SIDE = SideSizes(3, 64, 128, 4)


SEVERAL = auto_space("around", SIDE, SIDE, 16, ("softmax", "linear"))


def chosen(space: SearchSpace) -> set[str]:
    return {choice.name for choice in space.choices if any(len(row) > 1 for row in choice.options)}


def test_all_of_it_or_these_genes_of_all_sides() -> None:
    assert resolve("auto", lambda: SEVERAL) == SEVERAL
    kinds = {name for name in chosen(SEVERAL) if name.endswith("attention")}
    narrow = resolve("auto:layers, decoder.ffn_dim", lambda: SEVERAL)
    assert kinds and chosen(narrow) == {"encoder.layers", "decoder.layers", "decoder.ffn_dim", *kinds}
    assert narrow.largest() == SEVERAL.largest() and narrow.name == "around-layers-decoder.ffn_dim"
    assert chosen(resolve("attention", lambda: SEVERAL)) == kinds


def test_a_space_whose_largest_network_is_the_trained_one() -> None:
    genes = {gene: value for gene, value in SEVERAL.largest().items() if not gene.endswith("attention")}
    assert space_for(SEVERAL, genes, lambda: SEVERAL) is SEVERAL
    hat = get_space("hat_small")
    assert space_for("hat_small", {**hat.largest(), "head_dim": 32}, lambda: SEVERAL) == hat
    assert space_for("auto", {}, lambda: SEVERAL) is SEVERAL


@pytest.mark.parametrize(
    ("space", "whether"),
    [("auto", True), ("auto:layers", True), ("attention", True), ("auto.yml", False), ("a:auto", False)],
)
def test_what_is_made_and_what_is_read(space: str, whether: bool) -> None:
    assert is_auto(space) is whether


@pytest.mark.parametrize(
    ("call", "error", "value"),
    [
        (lambda: auto_space("around", BIG, BIG, 64, ("linear",)), ConfigError, "linear"),
        (lambda: varying(SEVERAL, ["fnn_dim"]), UnknownChoiceError, "'fnn_dim'"),
        (lambda: varying(SEVERAL, ["arbitrary_cross"]), UnknownChoiceError, "'arbitrary_cross'"),  # it has one option
        (lambda: resolve("auto:", lambda: SEVERAL), ConfigError, "auto:"),
        (lambda: attention_only(auto_space("plain", SIDE, SIDE, 16)), ConfigError, "'plain'"),
        (lambda: space_for("hat_small", {"encoder.layers": 9}, lambda: SEVERAL), SpaceError, "encoder.layers 3"),
        (lambda: space_for("hat_small", {"layers": 9}, lambda: SEVERAL), SpaceError, "layers None"),
        (lambda: space_for("cosformer_wmt14_en_de", {}, lambda: SEVERAL), SpaceError, "encoder.self_attention"),
        (lambda: check_kinds(["magic"]), UnknownChoiceError, "'magic'"),
        (lambda: check_kinds(["softmax"], "attention"), ConfigError, "softmax"),
        (lambda: check_kinds(["softmax", "linear"], "mine.yml"), ConfigError, "mine.yml"),
    ],
)
def test_bad_input(call: Callable[[], Any], error: type[NasExtError], value: str) -> None:
    with pytest.raises(error) as caught:
        call()
    assert value in str(caught.value) and "\n" not in str(caught.value)
