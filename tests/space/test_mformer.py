"""mFormer's translation spaces and the networks that the paper found in them."""

from __future__ import annotations

import pytest

from nas_core.errors import UnknownChoiceError
from nas_core.models.translation.costs import parameters
from nas_core.space import Architecture, SearchSpace, found_translation, get_space, with_attention
from tests.contracts.space import SpaceContract


class TestMFormer(SpaceContract):
    def make(self) -> SearchSpace:
        return get_space("mformer_translation_small")


def test_sizes_of_table_1() -> None:
    """Encoder: 2 widths, (4 sizes x 3 heads) per layer; decoder: 2 widths, 108 per layer, 1 to 6 layers."""
    decoder = 2 * sum(108**layers for layers in range(1, 7))
    assert get_space("cosformer_wmt14_en_de").cardinality() == 2 * 12**6 * decoder
    assert get_space("mformer_wmt14_en_de").cardinality() == 2 * 24**6 * decoder
    everywhere = 2 * 24**6 * 2 * sum(432**layers for layers in range(1, 7))
    assert get_space("mformer_wmt14_en_de_all").cardinality() == everywhere


def test_found_networks_have_the_sums_of_the_paper() -> None:
    space = get_space("mformer_wmt14_en_de")
    for name, ffn, heads, decoder_ffn in (
        ("mformer", 6 * 3072, 64, 7168),
        ("cosformer", 20 * 1024, 48, 8192),
        ("transformer", 23 * 1024, 48, 11264),
    ):
        found = space.validate(found_translation(name))
        assert sum(found.numbers("encoder.ffn_dim")) == ffn
        assert sum(found.numbers("encoder.self_heads")) == heads
        assert sum(found.numbers("decoder.ffn_dim")) == decoder_ffn
    kinds = found_translation("mformer")["encoder.self_attention"]
    assert isinstance(kinds, tuple) and [i + 1 for i, kind in enumerate(kinds) if kind == "linear"] == [2, 4]
    assert get_space("cosformer_wmt14_en_de").validate(found_translation("cosformer"))
    with pytest.raises(UnknownChoiceError, match="mformer"):
        found_translation("mformr")


def test_the_kind_of_attention_changes_no_size() -> None:
    found = found_translation("mformer")
    linear = Architecture({**found.to_dict(), "encoder.self_attention": ["linear"] * 6})
    assert parameters(found) == parameters(linear) > 10**7


def test_any_kinds_of_attention_have_codes_of_their_own_between_the_published_ones() -> None:
    """So that smallest and largest stay what they were, and no two kinds look alike to a router or a latency model."""
    published = get_space("mformer_translation_small").choice("encoder.self_attention")
    assert published.options[0] == ("softmax", "linear")
    assert published.codes == (("linear", 0.0), ("softmax", 1.0))
    space = with_attention(get_space("hat_small"), "more", ("softmax", "linear", "local", "theirs"))
    choice = space.choice("encoder.self_attention")
    assert [choice.code(kind) for kind in ("linear", "local", "theirs", "softmax")] == [0.0, 1 / 3, 2 / 3, 1.0]
    assert space.largest()["encoder.self_attention"] == ("softmax",) * 3
    assert space.smallest()["encoder.self_attention"] == ("linear",) * 3
