"""Spaces of masked language models, and what a layer of an architecture is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from nas_core.errors import ArchitectureError
from nas_core.space import Architecture, SearchSpace, get_space, masked_lm_space
from nas_core.space.masked_lm import MaskedLMLayer, masked_lm_layers
from tests.contracts.space import SpaceContract


class TestRobertaBase(SpaceContract):
    def make(self) -> SearchSpace:
        return get_space("roberta_base")


class TestMixedSmall(SpaceContract):
    def make(self) -> SearchSpace:
        return get_space("mformer_roberta_small")


class TestTiny(SpaceContract):
    """Few enough architectures to enumerate."""

    def make(self) -> SearchSpace:
        return masked_lm_space(
            "tiny",
            layers=(2, 1),
            embed_dims=(12, 8),
            ffn_dims=(16, 8),
            heads=(2, 1),
            head_dim=4,
            sequence_length=8,
            attention=("softmax", "linear", "local"),
        )


def test_the_largest_is_robertas_base_network() -> None:
    largest = get_space("roberta_base").largest()
    assert masked_lm_layers(largest) == (MaskedLMLayer(3072, 12, 768, "softmax"),) * 12
    assert largest.number("embed_dim") == 768


def test_the_largest_is_all_softmax_and_the_smallest_all_linear() -> None:
    space = get_space("mformer_roberta_small")
    assert space.largest()["attention"] == ("softmax",) * 4
    assert space.smallest()["attention"] == ("linear",) * 2
    assert "attention" not in get_space("roberta_small").largest()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"ffn_dim": (8,)}, r"ffn_dim = \[8\], expected 2 options"),
        ({"heads": (1, 1, 1)}, r"heads = \[1, 1, 1\], expected 2"),
        ({"layers": "two"}, "expected one integer"),
        ({"head_dim": None}, "no gene 'head_dim'"),
    ],
)
def test_malformed_architectures_are_explained(change: Mapping[str, Any], said: str) -> None:
    genes = {"layers": 2, "heads": (1, 2), "head_dim": 4, "ffn_dim": (8, 8), **change}
    with pytest.raises(ArchitectureError, match=said):
        masked_lm_layers(Architecture({name: gene for name, gene in genes.items() if gene is not None}))
