"""ONNX models written by hand."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason="onnx is not installed")
helper = onnx.helper

Dims = Sequence[int | str | None]
node = helper.make_node


def model(
    nodes: Sequence[Any],
    inputs: Mapping[str, Dims],
    outputs: Sequence[str] = ("y",),
    constants: Mapping[str, Any] | None = None,
    opset: int = 20,
    **more: Any,
) -> Any:
    """Constants are arrays, or shapes as tuples; floats unless they are arrays of whole numbers."""
    stored = []
    for name, value in (constants or {}).items():
        array = np.zeros(value, np.float32) if isinstance(value, tuple) else np.asarray(value)
        stored.append(onnx.numpy_helper.from_array(array, name))
    graph = helper.make_graph(
        list(nodes),
        "handmade",
        [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, dims) for name, dims in inputs.items()],
        [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None) for name in outputs],
        stored,
    )
    imports = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1), helper.make_opsetid("mine", 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=9, **more)


def residual(channels: int = 8, size: int = 16, batch: int | str = 1) -> Any:
    """Two convolutions around a shortcut, pooling, a linear layer: 8 operators, 9 edges with the input's."""
    c = channels
    return model(
        [
            node("Conv", ["x", "w0", "b0"], ["stem"], kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2]),
            node("Relu", ["stem"], ["stem_relu"]),
            node("Conv", ["stem_relu", "w1"], ["branch"], kernel_shape=[3, 3], pads=[1, 1, 1, 1], group=c),
            node("Conv", ["branch", "w2", "b2"], ["point"], kernel_shape=[1, 1]),
            node("Add", ["point", "stem_relu"], ["sum"]),
            node("GlobalAveragePool", ["sum"], ["pooled"]),
            node("Flatten", ["pooled"], ["flat"]),
            node("Gemm", ["flat", "w3", "b3"], ["y"], transB=1),
        ],
        {"x": (batch, 3, size, size)},
        constants={
            "w0": (c, 3, 3, 3), "b0": (c,), "w1": (c, 1, 3, 3), "w2": (c, c, 1, 1), "b2": (c,), "w3": (10, c),
            "b3": (10,),
        },
    )  # fmt: skip


def chain(count: int) -> Any:
    """So many Relus, one after the other."""
    names = ["x", *(f"t{i}" for i in range(count - 1)), "y"]
    return model([node("Relu", [a], [b]) for a, b in itertools.pairwise(names)], {"x": (1, 4)})


def shuffled(source: Any, seed: int, rename: bool = False) -> Any:
    """The same network with its operators in another order and, on demand, other names of tensors."""
    other = onnx.ModelProto.FromString(source.SerializeToString())
    nodes = list(other.graph.node)
    order = np.random.default_rng(seed).permutation(len(nodes))
    copies = [onnx.NodeProto.FromString(nodes[i].SerializeToString()) for i in order]
    del other.graph.node[:]
    other.graph.node.extend(copies)
    if rename:
        outputs = {tensor.name for tensor in other.graph.output} | {tensor.name for tensor in other.graph.input}
        created = [name for n in other.graph.node for name in n.output if name not in outputs]
        numbers = np.random.default_rng(seed + 1).permutation(len(created))
        new = {name: f"n{number}" for name, number in zip(created, numbers, strict=True)}
        for n in other.graph.node:
            n.input[:] = [new.get(name, name) for name in n.input]
            n.output[:] = [new.get(name, name) for name in n.output]
    return other
