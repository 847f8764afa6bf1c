"""Both encodings of operators: attributes, costs that can be worked out by hand, and features."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nas_core.graph.onnx.encoding import ATTRIBUTES
from nas_core.graph.onnx.reader import read_onnx
from tests.graph.onnx.models import model, node

pytestmark = pytest.mark.onnx


IMAGE = {"x": (2, 6, 8, 8)}


TWO = {"x": (2, 3, 4), "z": (2, 4, 5)}


def one(kind: str, inputs: dict[str, Any], constants: dict[str, Any] | None = None, **settings: Any) -> Any:
    opset = settings.pop("opset", 20)
    names = settings.pop("names", [*inputs, *(constants or {})])
    onnx_model = model([node(kind, names, ["y"], **settings)], inputs, constants=constants, opset=opset)
    read = read_onnx(onnx_model)
    place = len(read.graph) - 1
    assert read.operators[place].endswith(kind) and not read.unknown
    values = dict(zip(ATTRIBUTES, read.graph.attributes[place].tolist(), strict=True))  # type: ignore[index]
    return int(read.flops[place]), int(read.params[place]), int(read.access[place]), values


CASES: list[tuple[str, dict[str, Any], dict[str, Any], dict[str, Any], int, int]] = [
    ("Conv", IMAGE, {"w": (10, 6, 3, 3), "b": (10,)}, {"pads": [1] * 4}, 2 * 10 * 64 * (2 * 54 + 1), 550),
    ("Conv", IMAGE, {"w": (12, 2, 3, 3)}, {"group": 3, "strides": [2, 2], "pads": [1] * 4}, 2 * 12 * 16 * 36, 216),
    ("Conv", {"x": (1, 3, 5, 6, 7)}, {"w": (4, 3, 2, 3, 3)}, {}, 4 * 4 * 4 * 5 * 2 * 54, 216),
    ("ConvTranspose", IMAGE, {"w": (6, 4, 2, 2)}, {"strides": [2, 2]}, 2 * (2 * 6 * 64) * 16, 96),
    ("Gemm", {"x": (3, 4)}, {"w": (5, 4), "b": (5,)}, {"transB": 1}, 15 * 9, 25),
    ("Gemm", {"x": (4, 3)}, {"w": (4, 5)}, {"transA": 1}, 15 * 8, 20),
    ("MatMul", TWO, {}, {}, 2 * 2 * 3 * 5 * 4, 0),
    ("MatMul", {"x": (2, 3, 4)}, {"w": (4, 5)}, {}, 2 * 2 * 3 * 5 * 4, 20),
    ("Einsum", TWO, {}, {"equation": "bij,bjk->bik"}, 2 * 2 * 3 * 5 * 4, 0),
    ("Einsum", TWO, {}, {"equation": "...ij, ...jk -> ...ik"}, 2 * 2 * 3 * 5 * 4, 0),
    ("LayerNormalization", {"x": (2, 3, 4)}, {"w": (4,), "b": (4,)}, {}, 7 * 24, 8),
    ("BatchNormalization", IMAGE, dict.fromkeys("sbmv", (6,)), {}, 2 * 768, 24),
    ("Softmax", {"x": (2, 3, 4)}, {}, {}, 5 * 24, 0),
    ("Gelu", {"x": (2, 3, 4)}, {}, {}, 5 * 24, 0),
    ("Relu", {"x": (2, 3, 4)}, {}, {}, 24, 0),
    ("Transpose", {"x": (2, 3, 4)}, {}, {"perm": [2, 0, 1]}, 0, 0),
    ("AveragePool", IMAGE, {}, {"kernel_shape": [2, 2], "strides": [2, 2]}, 2 * 6 * 16 * 4, 0),
    ("MaxPool", IMAGE, {}, {"kernel_shape": [2, 2], "strides": [2, 2]}, 2 * 6 * 16 * 4, 0),
    ("GlobalAveragePool", IMAGE, {}, {}, 768, 0),
    ("ReduceMean", IMAGE, {"axes": np.array([2, 3])}, {}, 768, 0),
    ("LSTM", {"x": (7, 2, 3)}, {"w": (1, 20, 3), "r": (1, 20, 5)}, {"hidden_size": 5}, 2 * 14 * (60 + 100), 160),
]


@pytest.mark.parametrize(
    ("kind", "inputs", "constants", "settings", "flops", "params"),
    CASES,
    ids=[f"{i}-{c[0]}" for i, c in enumerate(CASES)],
)
def test_costs_by_hand(
    kind: str, inputs: dict[str, Any], constants: dict[str, Any], settings: dict[str, Any], flops: int, params: int
) -> None:
    assert one(kind, inputs, constants, **settings)[:2] == (flops, params)


def test_fused_attention_costs_what_its_parts_do() -> None:
    shapes = {"q": (2, 3, 5, 8), "k": (2, 3, 7, 8), "v": (2, 3, 7, 4)}
    fused = one("Attention", shapes, opset=23)
    steps = [
        node("Transpose", ["k"], ["kt"], perm=[0, 1, 3, 2]),
        node("MatMul", ["q", "kt"], ["scores"]),
        node("Softmax", ["scores"], ["weights"]),
        node("MatMul", ["weights", "v"], ["y"]),
    ]
    assert fused[0] == read_onnx(model(steps, shapes)).flops.sum() == 2 * 3 * 5 * 7 * (16 + 8 + 5)
    assert (fused[3]["groups"], fused[3]["summed"]) == (3, 7)


def test_fused_operators_of_onnxruntime_are_known() -> None:
    nodes = [
        node("MultiHeadAttention", ["x", "x", "x"], ["a"], domain="com.microsoft", num_heads=2),
        node("Gelu", ["a"], ["y"], domain="com.microsoft"),
    ]
    read = read_onnx(model(nodes, {"x": (2, 5, 8)}), shapes={"a": (2, 5, 8), "y": (2, 5, 8)})
    assert read.flops.tolist() == [0, 2 * 5 * 5 * (16 + 16 + 10), 5 * 80] and not read.unknown


def test_memory_access_is_what_is_read_and_written() -> None:
    assert one("MatMul", {"x": (2, 3, 4)}, {"w": (4, 5)})[2] == 24 + 20 + 30
    assert one("Reshape", {"x": (2, 3, 4)}, {"to": np.array([6, 4])})[2] == 0
    assert one("Gather", {"x": (100, 4)}, {"i": np.array([1, 2])})[2] == 8 + 2 + 8, "two rows of the table"


def test_shared_parameters_count_once() -> None:
    nodes = [node("MatMul", ["x", "w"], ["a"]), node("MatMul", ["a", "w"], ["y"])]
    read = read_onnx(model(nodes, {"x": (1, 4)}, constants={"w": (4, 4)}))
    assert read.params.tolist() == [0, 16, 16] and read.params_m == 16 / 1e6


def test_parameters_that_an_exporter_joined_count_apart() -> None:
    nodes = [node("Identity", ["w"], ["v"]), node("MatMul", ["x", "w"], ["a"]), node("MatMul", ["a", "v"], ["y"])]
    read = read_onnx(model(nodes, {"x": (1, 4)}, constants={"w": (4, 4)}))
    assert read.params_m == 32 / 1e6 and list(read.operators) == ["Input", "MatMul", "MatMul"]
