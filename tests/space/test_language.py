"""Spaces of language models."""

from __future__ import annotations

import pytest

from nas_core.errors import ArchitectureError
from nas_core.space import Architecture, SearchSpace, get_space, language_space
from nas_core.space.language import with_context
from nas_core.space.stack import TransformerLayer, transformer_layers
from tests.contracts.space import SpaceContract


class TestLanguage(SpaceContract):
    def make(self) -> SearchSpace:
        return get_space("language_small")


class TestMixed(SpaceContract):
    def make(self) -> SearchSpace:
        return get_space("mformer_language_small")


def test_layers_have_their_kinds_of_attention() -> None:
    space = get_space("mformer_language_small")
    assert space.largest()["attention"] == ("softmax",) * 4 and space.smallest()["attention"] == ("linear",) * 2
    assert transformer_layers(space.largest())[0] == TransformerLayer(512, 4, 128, "softmax")
    plain = get_space("language_small")
    assert "attention" not in plain.largest() and transformer_layers(plain.largest())[3].attention == "softmax"
    linear = language_space("one", layers=(2,), embed_dims=(8,), ffn_dims=(8,), heads=(2,), head_dim=4,
                            context_length=9, attention=("linear",))  # fmt: skip
    assert [layer.attention for layer in transformer_layers(linear.largest())] == ["linear"] * 2
    short = Architecture({**space.smallest().to_dict(), "heads": [2]})
    with pytest.raises(ArchitectureError, match=r"heads = .2., expected 2 options, one per layer"):
        transformer_layers(short)


def test_another_context_is_the_same_space_otherwise() -> None:
    space = with_context(get_space("language_small"), 64)
    assert space.fixed["context_length"] == 64 and space.fixed["head_dim"] == 32
    assert space.cardinality() == get_space("language_small").cardinality()
