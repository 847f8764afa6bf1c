"""Image networks as graphs, sublayer by sublayer."""

from __future__ import annotations

from typing import Any

import numpy as np

from nas_core.models.image.kind import ATTRIBUTES, GRAPHS, SCALES, image_graph
from nas_core.space import Architecture, get_space
from tests.contracts.graph_reader import GraphReaderContract

SMALL = {
    "layers": 2,
    "embed_dim": 8,
    "ffn_dim": (16, 12),
    "heads": (2, 3),
    "attention": ("linear", "softmax"),
    "head_dim": 4,
    "image_size": 16,
    "patch_size": 4,
    "relative_clip": 3,
}


def small(**changes: Any) -> Architecture:
    return Architecture({**SMALL, **changes})


class TestReader(GraphReaderContract):
    name = "image"

    def inputs(self) -> list[tuple[Any, ...]]:
        rng = np.random.default_rng(0)
        spaces = [get_space(name) for name in ("mformer_cifar10", "autoformer_s", "mformer_cifar10_small")]
        return [(small(),), *((space.sample(rng),) for space in spaces for _ in range(3))]

    def wrong(self) -> dict[str, tuple[Any, ...]]:
        return {
            "no gene 'embed_dim'": (Architecture({k: v for k, v in SMALL.items() if k != "embed_dim"}),),
            "expected 2 options, one per layer": (small(heads=(1, 2, 3)),),
            "attention is 'cosine'": (small(attention=("cosine", "softmax")),),
            "is not divisible by patch size": (small(patch_size=5),),
        }


def test_a_small_network_by_hand() -> None:
    graph = image_graph(small())
    names = ["patch_embedding", "image_linear_attention", "feed_forward", "image_self_attention", "feed_forward"]
    assert [GRAPHS.operations()[index] for index in graph.ops] == [*names, "pooling", "classifier"]
    assert graph.edges.tolist() == [[node, node + 1] for node in range(6)]
    expected = np.zeros((7, 7))
    expected[:, 0] = 8
    expected[[1, 3], 1], expected[[1, 3], 2] = (2, 3), (8, 12)
    expected[[2, 4], 3] = 16, 12
    expected[:6, 4], expected[0, 5], expected[3, 6] = 4, 4, 3
    assert graph.attributes is not None and len(ATTRIBUTES) == len(SCALES) == 7
    np.testing.assert_allclose(graph.attributes, expected / np.array(SCALES), rtol=1e-6)
