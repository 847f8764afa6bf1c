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
            "an attention is 'cosine'": (small(attention=("cosine", "softmax")),),
            "do not divide into patches": (small(patch_size=5),),
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


def test_every_gene_changes_the_graph() -> None:
    space, rng = get_space("mformer_cifar10_small"), np.random.default_rng(1)
    architectures = {space.sample(rng) for _ in range(300)}
    assert len({image_graph(architecture) for architecture in architectures}) == len(architectures)
    changed = {"image_size": 32, "patch_size": 8, "head_dim": 8, "relative_clip": 0, "ffn_dim": (16, 16)}
    assert len({image_graph(small(**{gene: value})) for gene, value in changed.items()} | {image_graph(small())}) == 6


def test_relative_positions_are_of_softmax_attention_alone() -> None:
    linear = small(attention="linear")
    assert image_graph(linear) == image_graph(Architecture({**linear.to_dict(), "relative_clip": 0}))
