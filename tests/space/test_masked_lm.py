"""Spaces of masked language models."""

from __future__ import annotations

from nas_core.space import SearchSpace, get_space, masked_lm_space
from nas_core.space.stack import TransformerLayer, transformer_layers
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
    assert transformer_layers(largest) == (TransformerLayer(3072, 12, 768, "softmax"),) * 12
    assert largest.number("embed_dim") == 768


def test_the_largest_is_all_softmax_and_the_smallest_all_linear() -> None:
    space = get_space("mformer_roberta_small")
    assert space.largest()["attention"] == ("softmax",) * 4
    assert space.smallest()["attention"] == ("linear",) * 2
    assert "attention" not in get_space("roberta_small").largest()
