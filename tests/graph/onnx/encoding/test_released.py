"""The published encoding, number by number."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nas_core.graph.onnx import RELEASED, OnnxNetwork, read_onnx
from tests.graph.onnx.models import model, node, residual

pytestmark = pytest.mark.onnx


def released(*arguments: Any, **settings: Any) -> OnnxNetwork:
    return read_onnx(model(*arguments, **settings), features="released", warn=False)


def test_codes_of_operators_are_the_published_ones() -> None:
    codes = {"Conv": 1, "Relu": 2, "Split": 7, "Gemm": 9, "Upsample": 11, "Cast": 17, "Matmul": 18, "ConvTranspose": 28}
    assert all(RELEASED.index(name) == code - 1 for name, code in codes.items()) and len(RELEASED) == 32


def test_a_convolution_has_the_first_number_of_everything() -> None:
    settings = {"kernel_shape": [1, 7], "strides": [2, 1], "pads": [0, 3, 0, 3], "dilations": [1, 1], "group": 2}
    read = released(
        [node("Conv", ["x", "w", "b"], ["y"], **settings)],
        {"x": (1, 4, 8, 8)},
        constants={"w": (6, 2, 1, 7), "b": (6,)},
    )
    assert read.graph.attributes is not None and read.graph.attributes[1].tolist() == [1, 2, 0, 1, 2, 1, 0, 0]
    assert (read.flops[1], read.params[1], read.access[1]) == (6 * 4 * 8 * (2 * 14 - 1 + 1), 6 * 15, 6 * 4 * 8 + 90)


@pytest.mark.parametrize(
    ("kind", "settings", "constants", "attributes"),
    [
        ("MaxPool", {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 1, 0]}, {}, [3, 2, 1, 0, 0, 0, 0, 0]),
        ("Transpose", {"perm": [0, 2, 3, 1]}, {}, [0, 2, 3, 1, 0, 0, 0, 0]),
        ("ConvTranspose", {"kernel_shape": [2, 2], "strides": [2, 2]}, {"w": (4, 5, 2, 2)}, [2, 2, 0, 1, 1, 0, 0, 0]),
        ("Relu", {}, {}, [0] * 8),
    ],
)
def test_attributes_stand_one_after_the_other(
    kind: str, settings: dict[str, Any], constants: dict[str, Any], attributes: list[int]
) -> None:
    read = released([node(kind, ["x", *constants], ["y"], **settings)], {"x": (1, 4, 8, 8)}, constants=constants)
    assert read.graph.attributes is not None and read.graph.attributes[1].tolist() == attributes


def test_constants_that_are_read_are_inputs_and_weights_are_none() -> None:
    nodes = [
        node("Conv", ["x", "w"], ["a"]),
        node("Clip", ["a", "low", "high"], ["b"]),
        node("Constant", [], ["c"], value_floats=[1.0, 2.0]),
        node("Add", ["b", "c"], ["y"]),
    ]
    constants = {"w": (2, 3, 1, 1), "low": np.float32(0), "high": np.float32(6)}
    read = released(nodes, {"x": (1, 3, 2, 2)}, constants=constants)
    assert sorted(zip(read.tensors, read.operators, strict=True)) == [
        ("a", "Conv"), ("b", "Clip"), ("c", "Input"), ("high", "Input"), ("low", "Input"), ("x", "Input"), ("y", "Add"),
    ]  # fmt: skip
    assert len(read.graph.edges) == 6


def test_a_matrix_product_is_unknown_and_a_softmax_costs_eleven() -> None:
    nodes = [node("MatMul", ["x", "z"], ["a"]), node("Softmax", ["a"], ["y"])]
    read = released(nodes, {"x": (1, 2, 3, 4), "z": (1, 2, 4, 5)})
    assert read.unknown == {"MatMul": 1} and RELEASED[read.graph.ops[2]] == "input_or_unknown"
    assert read.flops.tolist() == [0, 0, 0, 3 * 4 - 1] and read.access.tolist() == [0, 0, 0, 30]


def test_other_costs_are_the_published_ones() -> None:
    nodes = [
        node("BatchNormalization", ["x", "scale", "shift", "mean", "var"], ["a"]),
        node("Sigmoid", ["a"], ["b"]),
        node("AveragePool", ["b"], ["c"], kernel_shape=[2, 2], strides=[2, 2]),
        node("GlobalAveragePool", ["c"], ["d"]),
        node("Flatten", ["d"], ["e"]),
        node("Gemm", ["e", "w", "bias"], ["y"], transB=1),
    ]
    constants = {**dict.fromkeys(("scale", "shift", "mean", "var"), (6,)), "w": (5, 6), "bias": (5,)}
    read = released(nodes, {"x": (1, 6, 8, 8)}, constants=constants)
    assert read.flops.tolist() == [0, 4 * 384, 384, 6 * 16 * 4, 6 * 4, 0, 5 * 12]
    assert read.params.tolist() == [0, 24, 0, 0, 0, 0, 35]
    assert read.access.tolist() == [0, 384 + 24, 384, 96, 6, 6, 5 + 35]


def test_a_network_is_the_sum_of_its_operators() -> None:
    read = read_onnx(residual(), features="released")
    assert read.graph.static is not None and len(read.graph) == 9 and not read.unknown
    totals = [1, read.flops.sum() / 1e9, read.params.sum() / 1e7, read.access.sum() / 1e7]
    np.testing.assert_allclose(read.graph.static, totals, rtol=1e-6)


def test_shapes_end_after_four_dimensions() -> None:
    nodes = [node("Reshape", ["x", "to"], ["y"])]
    read = released(nodes, {"x": (1, 6, 20)}, constants={"to": np.array([2, 3, 1, 4, 5])})
    shapes = dict(zip(read.tensors, read.graph.shapes.tolist(), strict=True))  # type: ignore[union-attr]
    assert shapes == {"x": [1, 6, 20, 0], "to": [5, 0, 0, 0], "y": [2, 3, 1, 4]}
