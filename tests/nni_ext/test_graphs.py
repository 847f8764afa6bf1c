"""Samples as graphs: against the cells that NNI itself builds, and what is wrong with a sample. Needs no NNI."""

from __future__ import annotations

from typing import Any

import numpy as np

from nas_core.graph.nasbench101 import nasbench101_graph
from nas_core.graph.nasbench201 import nasbench201_graph
from nas_core.space import SearchSpace
from nas_core.space.labels import architecture_of
from nni_ext.graphs import nasbench101_sample, nasbench201_sample, nasbench201_unpruned_sample

CELL_101 = {
    "cell/num_nodes": 5,
    "cell/op1": "conv3x3-bn-relu",
    "cell/op2": "maxpool3x3",
    "cell/op3": "conv1x1-bn-relu",
    "cell/op4": "maxpool3x3",  # of a larger cell
    "cell/input1": [0],
    "cell/input2": [1],
    "cell/input3": [],  # so that node 3 is pruned
    "cell/input4": [3, 2, 0],
    "cell/input5": [4],
    "cell/final": {"op1": "stale"},
}
CELL_201 = {"cell/0_1": "conv_3x3", "cell/0_2": "none", "cell/1_2": "skip_connect", "cell/0_3": "conv_1x1",
            "cell/1_3": "avg_pool_3x3", "cell/2_3": "conv_3x3", "lr": 0.1}  # fmt: skip


def changed(sample: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """Changes by label without ``cell/``; None takes the label away."""
    merged = sample | {f"cell/{name}": value for name, value in changes.items()}
    return {label: value for label, value in merged.items() if value is not None}


def test_nasbench201() -> None:
    text = "|nor_conv_3x3~0|+|none~0|skip_connect~1|+|nor_conv_1x1~0|avg_pool_3x3~1|nor_conv_3x3~2|"
    assert nasbench201_sample(CELL_201) == nasbench201_graph(text)


def test_nasbench101() -> None:
    matrix = [[0, 1, 0, 1], [0, 0, 1, 0], [0, 0, 0, 1], [0, 0, 0, 0]]
    expected = nasbench101_graph(matrix, ["input", "conv3x3-bn-relu", "maxpool3x3", "output"])
    assert nasbench101_sample(CELL_101) == expected
    flags = {
        f"{label}/{source}": source in value
        for label, value in CELL_101.items()
        if label.startswith("cell/input")
        for source in range(int(label[-1]))
    }
    plain = {label: value for label, value in CELL_101.items() if not label.startswith("cell/input")}
    assert nasbench101_sample(plain | flags) == expected


def test_architecture(space: SearchSpace) -> None:
    """All architectures of a sample's layers and more; a layer that does not exist changes nothing."""
    labels = space.feature_names("layers")
    rng = np.random.default_rng(0)
    for _ in range(20):
        architecture = space.sample(rng)
        flat = {label: "whatever" for label in labels} | {"lr": 0.1}
        for name in architecture:
            gene = architecture[name]
            flat |= (
                {f"{name}.{i}": option for i, option in enumerate(gene)} if isinstance(gene, tuple) else {name: gene}
            )
        assert architecture_of(space, flat) == architecture


def test_a_latency_graph_has_what_reaches_no_output() -> None:
    sample = changed(CELL_201, **{"1_3": "none", "2_3": "none"})
    pruned, full = nasbench201_sample(sample), nasbench201_unpruned_sample(sample)
    ops = "|nor_conv_3x3~0|+|none~0|skip_connect~1|+|nor_conv_1x1~0|none~1|none~2|"
    assert full == nasbench201_graph(ops, prune=False) and pruned == nasbench201_graph(ops)
    assert (len(pruned), len(full)) == (3, 5)
