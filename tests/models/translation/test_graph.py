"""HAT's translation networks, sublayer by sublayer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nas_core.models.translation.kind import ATTRIBUTES, SCALES, operations, translation_graph
from nas_core.space import Architecture, get_space
from tests.contracts.graph_reader import GraphReaderContract

OPERATIONS = operations()
SMALL = {
    "qkv_dim": 64,
    "encoder.embed_dim": 96,
    "encoder.layers": 2,
    "encoder.ffn_dim": (256, 384),
    "encoder.self_heads": (4, 2),
    "decoder.embed_dim": 128,
    "decoder.layers": 2,
    "decoder.ffn_dim": (512, 256),
    "decoder.self_heads": (2, 4),
    "decoder.cross_heads": (8, 1),
    "decoder.arbitrary_cross": (2, -1),
}


def small(**changes: Any) -> Architecture:
    return Architecture({**SMALL, **{name.replace("__", "."): value for name, value in changes.items()}})


def without(gene: str) -> Architecture:
    return Architecture({name: value for name, value in SMALL.items() if name != gene})


class TestReader(GraphReaderContract):
    name = "translation"

    def inputs(self) -> list[tuple[Any, ...]]:
        space, rng = get_space("hat_wmt14_en_de"), np.random.default_rng(0)
        drawn = [space.smallest(), space.largest(), *(space.sample(rng) for _ in range(5))]
        return [(small(),), *((architecture,) for architecture in drawn)]

    def wrong(self) -> dict[str, tuple[Any, ...]]:
        return {
            "no gene 'qkv_dim'": (without("qkv_dim"),),
            "no gene 'decoder.cross_heads'": (without("decoder.cross_heads"),),
            "decoder.arbitrary_cross is 3": (small(decoder__arbitrary_cross=(3, 1)),),
            "encoder.ffn_dim is [256] and encoder.layers 2": (small(encoder__ffn_dim=(256,)),),
            "decoder.layers 0": (small(decoder__layers=0),),
            "expected one integer per layer": (small(decoder__self_heads=4),),
        }


def test_a_small_network_by_hand() -> None:
    graph = translation_graph(small())
    names = ["source_embedding", *["encoder_self_attention", "encoder_feed_forward"] * 2, "target_embedding"]
    names += [*["decoder_self_attention", "cross_attention", "decoder_feed_forward"] * 2, "output"]
    assert [OPERATIONS[index] for index in graph.ops] == names
    chain = [(0, 1), (1, 2), (2, 3), (3, 4), (5, 6), (6, 7), (7, 8), (8, 9), (9, 10), (10, 11), (11, 12)]
    memories = [(2, 7), (4, 7), (4, 10)]  # three layers asked for, two exist; then the last alone
    assert {tuple(edge) for edge in graph.edges.tolist()} == {*chain, *memories}
    expected = np.zeros((13, 5))
    expected[:5, 0], expected[5:, 0] = 96, 128
    expected[[1, 3, 6, 7, 9, 10], 1] = 4, 2, 2, 8, 4, 1
    expected[[1, 3, 6, 7, 9, 10], 2] = 64
    expected[[2, 4, 8, 11], 3] = 256, 384, 512, 256
    expected[[7, 10], 4] = 2, 1
    assert graph.attributes is not None and len(ATTRIBUTES) == len(SCALES) == 5
    np.testing.assert_allclose(graph.attributes, expected / np.array(SCALES), rtol=1e-6)


@pytest.mark.parametrize(("option", "layers"), [(-1, [6]), (1, [5, 6]), (2, [4, 5, 6])])
def test_cross_attention_reads_the_last_layers(option: int, layers: list[int]) -> None:
    largest = get_space("hat_wmt14_en_de").largest().to_dict()
    graph = translation_graph(Architecture({**largest, "decoder.arbitrary_cross": [option] * 6}))
    outputs = np.flatnonzero(graph.ops == OPERATIONS.index("encoder_feed_forward"))
    for node in np.flatnonzero(graph.ops == OPERATIONS.index("cross_attention")):
        read = np.flatnonzero(graph.adjacency[:, node])
        assert read[:-1].tolist() == outputs[np.array(layers) - 1].tolist() and read[-1] == node - 1


def test_operations_of_graphs_made_before_keep_their_index() -> None:
    assert OPERATIONS.index("output") == 7
    assert OPERATIONS[8:] == ("encoder_linear_attention", "decoder_linear_attention", "linear_cross_attention")
