"""Published spaces, architectures and draws: sizes, layers and encodings."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from benchmarks.parts.published import HAT_SPACES
from nas_core.space import Architecture, get_space, with_attention
from nas_core.space import image as image_space
from nas_core.space.bert import encoder_layers
from nas_core.space.hat import hat_draw
from nas_core.space.image import (
    image_architecture,
    image_layers,
)
from nas_core.space.mformer import published_translation
from nas_core.space.stack import TransformerLayer


@pytest.mark.parametrize("name", HAT_SPACES.values())
def test_size_is_the_published_one(name: str) -> None:
    space = get_space(name)
    assert space.cardinality() == 417_846_678_672_384
    assert space.cardinality() == 2 * 2 * (3 * 2) ** 6 * sum((3 * 2 * 2 * 3) ** depth for depth in range(1, 7))
    assert space.slots.count == 40  # HAT's gene has 40 places


def reference_draw(update: int) -> dict[str, Any]:
    """HAT's procedure for the WMT spaces, written down once more from its description."""
    random.seed(update)
    genes: dict[str, Any] = {"qkv_dim": 512}
    genes["encoder.embed_dim"] = random.choice([640, 512])
    genes["decoder.embed_dim"] = random.choice([640, 512])
    genes["encoder.layers"] = random.choice([6])
    genes["decoder.layers"] = random.choice([6, 5, 4, 3, 2, 1])
    for name in ("encoder.ffn_dim", "encoder.self_heads", "decoder.ffn_dim", "decoder.self_heads"):
        genes[name] = []
    genes["decoder.cross_heads"] = []
    for _ in range(genes["encoder.layers"]):
        genes["encoder.ffn_dim"].append(random.choice([3072, 2048, 1024]))
        genes["encoder.self_heads"].append(random.choice([8, 4]))
    for _ in range(genes["decoder.layers"]):
        genes["decoder.ffn_dim"].append(random.choice([3072, 2048, 1024]))
        genes["decoder.self_heads"].append(random.choice([8, 4]))
        genes["decoder.cross_heads"].append(random.choice([8, 4]))
    cross = [random.choice([-1, 1, 2]) for _ in range(6)]
    genes["decoder.arbitrary_cross"] = cross[: genes["decoder.layers"]]
    return genes


def test_draw_order_is_hats() -> None:
    space = get_space("hat_wmt14_en_de")
    for update in (*range(40), 39_999):
        drawn = hat_draw(space, update)
        assert drawn == Architecture(reference_draw(update))
        assert drawn in space


def test_summary_encoding_is_hats_latency_features() -> None:
    """Averages over existing layers, cross-attention as the number of encoder layers read, HAT's constants."""
    architecture = Architecture(
        {
            **get_space("hat_wmt14_en_de").largest().to_dict(),
            "decoder.layers": 2,
            "decoder.ffn_dim": [3072, 1024],
            "decoder.self_heads": [8, 4],
            "decoder.cross_heads": [4, 4],
            "decoder.arbitrary_cross": [-1, 2],
        }
    )
    space = get_space("hat_wmt14_en_de")
    features = dict(zip(space.feature_names(), space.encode(architecture)[0], strict=True))
    expected = {
        "encoder.embed_dim": 640 / 640,
        "encoder.layers": 6 / 6,
        "encoder.ffn_dim.mean": 3072 / 2048,
        "encoder.self_heads.mean": 8 / 6,
        "decoder.embed_dim": 640 / 640,
        "decoder.layers": 2 / 6,
        "decoder.ffn_dim.mean": 2048 / 2048,
        "decoder.self_heads.mean": 6 / 6,
        "decoder.cross_heads.mean": 4 / 6,
        "decoder.arbitrary_cross.mean": (1 + 3) / 2 / 2,
    }
    assert features.keys() == expected.keys()
    assert np.allclose([features[name] for name in expected], list(expected.values()))


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
        result = space.validate(published_translation(name))
        assert sum(result.numbers("encoder.ffn_dim")) == ffn
        assert sum(result.numbers("encoder.self_heads")) == heads
        assert sum(result.numbers("decoder.ffn_dim")) == decoder_ffn
    kinds = published_translation("mformer")["encoder.self_attention"]
    assert isinstance(kinds, tuple) and [i + 1 for i, kind in enumerate(kinds) if kind == "linear"] == [2, 4]
    assert get_space("cosformer_wmt14_en_de").validate(published_translation("cosformer"))


def test_any_kinds_of_attention_have_codes_of_their_own_between_the_published_ones() -> None:
    """So that smallest and largest stay what they were, and no two kinds look alike to a router or a latency model."""
    published = get_space("mformer_translation_small").choice("encoder.self_attention")
    assert published.options[0] == ("softmax", "linear")
    assert published.codes == (("linear", 0.0), ("softmax", 1.0))
    space = with_attention(get_space("hat_small"), "more", ("softmax", "linear", "others", "theirs"))
    choice = space.choice("encoder.self_attention")
    assert [choice.code(kind) for kind in ("linear", "others", "theirs", "softmax")] == [0.0, 1 / 3, 2 / 3, 1.0]
    assert space.largest()["encoder.self_attention"] == ("softmax",) * 3
    assert space.smallest()["encoder.self_attention"] == ("linear",) * 3


def test_published_networks() -> None:
    space = get_space("mformer_cifar10")
    sums = {"cosformer_star_cifar10": (12, 448, 17_024, 75), "mformer_like_cifar10": (12, 384, 14_784, 76)}
    for name, (layers, width, ffn, heads) in sums.items():
        result = image_architecture(name)
        assert result in space
        assert (result["layers"], result["embed_dim"]) == (layers, width)
        assert (sum(result.numbers("ffn_dim")), sum(result.numbers("heads"))) == (ffn, heads)
    linear = [
        layer
        for layer, kind in enumerate(image_architecture("mformer_like_cifar10")["attention"], 1)
        if kind == "linear"
    ]  # type: ignore[arg-type]
    assert linear == [3, 7, 11]
    assert image_architecture("subnet_s_cifar10").number("layers") == 13
    for name in image_space._FOUND:
        assert len(image_layers(image_architecture(name))) == image_architecture(name)["layers"]


def test_sizes_are_those_of_the_paper() -> None:
    shaped, homogeneous = get_space("supershaper_bert"), get_space("bert_base")
    assert shaped.cardinality() == 13_841_287_201 == 7**12 and homogeneous.cardinality() == 550
    assert homogeneous.feature_names("layers") == ["layers", "hidden_dim", "ffn_ratio", "heads"]
    assert len(shaped.feature_names("layers")) == 1 + 12, "the constant depth and each layer's width"
    assert shaped.encode(shaped.smallest(), "layers")[0] == pytest.approx([1.0, *[120 / 768] * 12])
    for space in (shaped, homogeneous):
        assert encoder_layers(space.largest()) == (TransformerLayer(3072, 12, 768, "softmax"),) * 12
