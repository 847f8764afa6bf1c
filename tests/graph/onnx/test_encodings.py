"""Both encodings of operators: attributes, costs that can be worked out by hand, and features."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from nas_core.graph import Graphs
from nas_core.graph.onnx.corrected import ATTRIBUTES
from nas_core.graph.onnx.encoding import node_features, static_features
from nas_core.graph.onnx.operators import CORRECTED, RELEASED, flops_per_element, operator_kind
from nas_core.graph.onnx.reader import OnnxNetwork, onnx_graph, read_onnx
from nas_core.predictor.nn_former.batch import Batch
from nas_core.predictor.nn_former.config import NNFormerConfig
from nas_core.predictor.nn_former.model import NNFormer, sinusoids
from tests.graph.onnx.models import model, node, onnx, residual

pytestmark = pytest.mark.onnx


def test_an_entry_says_kind_and_cost() -> None:
    kinds = {
        name: CORRECTED[kind]
        for name in ("HardSwish", "Tanh", "com.microsoft.BiasGelu")
        if (kind := operator_kind(name))
    }
    assert kinds == {"HardSwish": "swish", "Tanh": "sigmoid", "com.microsoft.BiasGelu": "gelu"}
    assert (flops_per_element("HardSwish"), flops_per_element("com.microsoft.BiasGelu")) == (4, 6)
    assert flops_per_element("Tanh") is None, "it costs what its kind does"
    assert (
        operator_kind("HardSwish:4") is None and operator_kind("Magic") is None and flops_per_element("Magic") is None
    )


IMAGE = {"x": (2, 6, 8, 8)}


TWO = {"x": (2, 3, 4), "z": (2, 4, 5)}


def one(kind: str, inputs: dict[str, Any], constants: dict[str, Any] | None = None, **settings: Any) -> Any:
    opset = settings.pop("opset", 20)
    names = settings.pop("names", [*inputs, *(constants or {})])
    made = model([node(kind, names, ["y"], **settings)], inputs, constants=constants, opset=opset)
    read = read_onnx(made)
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


def test_costs_by_hand_in_their_units(tmp_path: Path) -> None:
    """2 x 4 x 6 multiplications and as many additions; 24 weights; 8 numbers read, 12 written, and the weights."""
    path = tmp_path / "one.onnx"
    onnx.save(model([node("MatMul", ["x", "w"], ["y"])], {"x": (2, 4)}, constants={"w": (4, 6)}), path)
    read = read_onnx(path)
    assert read.name == str(path) and read.tensors == ("x", "y")
    assert read.flops.tolist() == [0, 96] and read.params.tolist() == [0, 24] and read.access.tolist() == [0, 44]
    assert {read.flops.dtype, read.params.dtype, read.access.dtype} == {np.dtype(np.int64)}
    assert (read.flops_g, read.params_m, read.access_m) == (96 / 1e9, 24 / 1e6, 44 / 1e6)
    graph = read.graph
    assert graph.costs is not None and graph.attributes is not None and graph.shapes is not None
    assert graph.costs.tolist() == [[0, 0, 0], [96, 24, 44]] and graph.shapes.tolist() == [[2, 4, 0, 0], [2, 6, 0, 0]]
    np.testing.assert_allclose(np.asarray(graph.static), [2, 96 / 1e9, 24 / 1e7, 44 / 1e7], rtol=1e-6)


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


def test_they_are_what_the_latency_model_embeds() -> None:
    graph = onnx_graph(residual())
    model = NNFormer(NNFormerConfig.latency(dim=16, depth=1))
    batch = Batch.of(Graphs.of([graph]))
    features = torch.from_numpy(node_features(graph))
    assert features.shape == (9, 192)
    torch.testing.assert_close(model.embed(features), model.embedded(batch)[0], atol=1e-4, rtol=1e-4)
    assert batch.static is not None
    expected = sinusoids(batch.static, 5).flatten()
    np.testing.assert_allclose(static_features(graph), expected.numpy(), atol=1e-5)


def test_as_released_inputs_have_no_code() -> None:
    graph = onnx_graph(residual(), features="released")
    codes = node_features(graph, "released")[:, :32]
    assert codes.sum(1).tolist() == [0, *[1] * 8] and codes[1, 0] == 1
    assert node_features(graph)[:, :32].sum() == 9
