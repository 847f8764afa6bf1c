"""Spaces of BERT encoders."""

from __future__ import annotations

from typing import ClassVar

import pytest

from nas_core.errors import ArchitectureError
from nas_core.space import Architecture, SearchSpace, bert_space, get_space
from nas_core.space.bert import encoder_layers, joint_sizes, layer_widths, network_width
from nas_core.space.stack import TransformerLayer
from tests.contracts.space import SpaceContract


class TestSuperShaper(SpaceContract):
    def make(self) -> SearchSpace:
        return get_space("supershaper_bert")


class TestHomogeneous(SpaceContract):
    def make(self) -> SearchSpace:
        return get_space("bert_base")


class TestSuperShaperSmall(SpaceContract):
    def make(self) -> SearchSpace:
        return get_space("supershaper_bert_small")


class TestHomogeneousSmall(SpaceContract):
    def make(self) -> SearchSpace:
        return get_space("bert_small")


class TestElasticDepth(SpaceContract):
    """Few enough architectures to enumerate."""

    wanted: ClassVar = {"layers": (2, 1), "hidden_dims": ((8, 4), (12, 8, 4)), "heads": (4, 2), "ffn_dims": (16, 8)}

    def make(self) -> SearchSpace:
        return bert_space("tiny", **self.wanted, sequence_length=8, outer_dim=12)


def test_sizes_are_those_of_the_paper() -> None:
    shaped, homogeneous = get_space("supershaper_bert"), get_space("bert_base")
    assert shaped.cardinality() == 13_841_287_201 == 7**12 and homogeneous.cardinality() == 550
    assert homogeneous.feature_names("layers") == ["layers", "hidden_dim", "ffn_ratio", "heads"]
    assert len(shaped.feature_names("layers")) == 1 + 12, "the constant depth and each layer's width"
    assert shaped.encode(shaped.smallest(), "layers")[0] == pytest.approx([1.0, *[120 / 768] * 12])
    for space in (shaped, homogeneous):
        assert encoder_layers(space.largest()) == (TransformerLayer(3072, 12, 768, "softmax"),) * 12


def test_widths_and_what_lies_between() -> None:
    space = get_space("supershaper_bert_small")
    architecture = Architecture({**space.largest().to_dict(), "hidden_dim": [32, 64, 64, 128]})
    assert layer_widths(architecture) == (32, 64, 64, 128) and network_width(architecture) == 128
    assert joint_sizes(architecture) == ((128, 32), (32, 64), (64, 64), (64, 128), (128, 128))
    assert [layer.qkv_dim for layer in encoder_layers(architecture)] == [32, 64, 64, 128]
    assert {layer.ffn_dim for layer in encoder_layers(architecture)} == {512}
    plain = get_space("bert_base").smallest()
    assert joint_sizes(plain) == () and network_width(plain) == 120
    assert encoder_layers(plain) == (TransformerLayer(240, 6, 120, "softmax"),) * 12
    odd = get_space("bert_small").validate(Architecture({"layers": 4, "hidden_dim": 112, "ffn_ratio": 3.0, "heads": 4}))
    assert encoder_layers(odd)[0].ffn_dim == 336
    roberta = get_space("roberta_small").largest()
    assert network_width(roberta) == 128 and layer_widths(roberta) == (128,) * 4 and joint_sizes(roberta) == ()


def test_wrong_architectures_are_told() -> None:
    genes = get_space("supershaper_bert_small").largest().to_dict()
    for wrong, said in (
        ({"hidden_dim": [30, 64, 64, 64]}, "a layer is 30 wide, which its 4 heads cannot share"),
        ({"hidden_dim": [32, 64]}, r"hidden_dim = \[32, 64\], expected 4 options"),
        ({"outer_dim": "wide"}, "expected one integer"),
    ):
        with pytest.raises(ArchitectureError, match=said):
            architecture = Architecture({**genes, **wrong})
            network_width(architecture)
            encoder_layers(architecture)
