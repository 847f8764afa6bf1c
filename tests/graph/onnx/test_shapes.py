"""Shapes: open dimensions, inference, operators that do not fit, and bad input."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nas_core.errors import ConfigError, DataError, NasExtError
from nas_core.graph import Graph, GraphError
from nas_core.graph.onnx.reader import onnx_graph, read_onnx
from tests.graph.onnx.models import model, node, onnx, residual

pytestmark = pytest.mark.onnx


def two_inputs() -> Any:
    return model([node("Add", ["x", "z"], ["y"])], {"x": ("b", "t", 4), "z": ("b", "t", 4)})


@pytest.mark.parametrize(
    "settings",
    [
        {"shapes": {"x": (3, 5, 4)}},
        {"shapes": {"x": np.array([3, 5, 4])}},
        {"shapes": {"b": 3, "t": np.int64(5)}},
        {"batch": 3, "shapes": {"t": 5}},
        {"shapes": {"x": (3, 5, 4), "z": [3, 5, 4]}},
    ],
)
def test_shapes_names_and_a_batch_bind_them(settings: dict[str, Any]) -> None:
    graph = onnx_graph(two_inputs(), **settings)
    assert graph.shapes is not None and graph.shapes.tolist() == [[3, 5, 4, 0]] * 3
    assert graph.static is not None and graph.static[0] == 3


def test_a_fixed_batch_can_be_another() -> None:
    fixed = residual(batch=1)
    inferred = onnx.shape_inference.infer_shapes(fixed)
    for source in (fixed, inferred):
        assert onnx_graph(source, batch=4) == onnx_graph(residual(batch="b"), batch=4)


def test_shapes_that_the_file_states_are_used_where_they_hold() -> None:
    onnx_model = model([node("Odd", ["x"], ["a"], domain="mine"), node("Relu", ["a"], ["y"])], {"x": ("b", 4)})
    onnx_model.graph.value_info.append(onnx.helper.make_tensor_value_info("a", 1, ["b", 6]))
    graph = read_onnx(onnx_model, batch=3, warn=False).graph
    assert graph.shapes is not None and graph.shapes.tolist() == [[3, 4, 0, 0], [3, 6, 0, 0], [3, 6, 0, 0]]


def test_computed_shapes_are_computed() -> None:
    """Sizes divided by a number: onnx itself does not carry this through."""
    nodes = [
        node("Shape", ["x"], ["sizes"]),
        node("Gather", ["sizes", "two"], ["height"], axis=0),
        node("Div", ["height", "two"], ["half"]),
        node("Cast", ["half"], ["half_f"], to=1),
        node("Floor", ["half_f"], ["floored"]),
        node("Cast", ["floored"], ["half_i"], to=7),
        node("Unsqueeze", ["half_i", "zero"], ["half_1"]),
        node("Concat", ["lead", "half_1"], ["to"], axis=0),
        node("Reshape", ["x", "to"], ["y"]),
    ]
    constants = {"two": np.array(2), "zero": np.array([0]), "lead": np.array([1, -1])}
    onnx_model = model(nodes, {"x": (1, 3, "h", 8)}, constants=constants)
    read = read_onnx(onnx_model, shapes={"h": 10})
    assert list(read.operators) == ["Input", "Reshape"]
    assert read.graph.shapes is not None and read.graph.shapes[1].tolist() == [1, 48, 5, 0]


def one(operator: str, x: tuple[int, ...], w: tuple[int, ...], y: tuple[int, ...], **settings: Any) -> Any:
    """An operator whose output the file gives a shape, as exporters do."""
    onnx_model = model([node(operator, ["x", "w"], ["y"], **settings)], {"x": x}, constants={"w": w})
    onnx_model.graph.output[0].CopyFrom(onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, y))
    return onnx_model


@pytest.mark.parametrize(
    "made",
    [
        one("Add", (1, 5, 8), (1, 4, 8), (1, 5, 8)),
        one("MatMul", (2, 3), (4, 5), (2, 5)),
        one("Gemm", (2, 3), (4, 5), (2, 5)),
        one("Conv", (1, 3, 8, 8), (5, 7, 3, 3), (1, 5, 6, 6), kernel_shape=[3, 3]),
    ],
    ids=("Add", "MatMul", "Gemm", "Conv"),
)
def test_what_no_runtime_could_compute_is_refused(made: Any) -> None:
    with pytest.raises(GraphError, match=r"has inputs of incompatible shapes \(.*\) and \(.*\); give"):
        read_onnx(made, warn=False)


def bound(**settings: Any) -> Callable[[], Graph]:
    return lambda: onnx_graph(two_inputs(), **settings)


def network(*nodes: tuple[str, list[str], list[str]], **constants: Any) -> Callable[[], Graph]:
    return lambda: onnx_graph(model([node(*n) for n in nodes], {"x": (1, 4)}, constants=constants))


@pytest.mark.parametrize(
    ("call", "error", "value"),
    [
        (bound(), GraphError, "dimension b of input 'x'"),
        (bound(batch=1), GraphError, "dimension t of input 'x'"),
        (bound(shapes={"q": (1, 2, 4)}), ConfigError, "'q'"),
        (bound(shapes={"x": (1, 4)}), ConfigError, "(1, 4)"),
        (bound(shapes={"x": (1, 0, 4)}), ConfigError, "(1, 0, 4)"),
        (bound(shapes={"x": "1x5x4"}), ConfigError, "'1x5x4'"),
        (bound(shapes={"x": (1, 2, 4), "z": (2, 2, 4)}), ConfigError, "1 and 2"),
        (bound(shapes=(1, 2, 4)), ConfigError, "tuple"),
        (bound(batch=True), ConfigError, "True"),
        (lambda: onnx_graph(7), GraphError, "int"),
        (lambda: onnx_graph(b""), GraphError, "not a complete ONNX model"),
        (lambda: onnx_graph("absent.onnx"), DataError, "absent.onnx"),
        (lambda: onnx_graph(onnx.ModelProto()), GraphError, "not a complete ONNX model"),
        (network(("Relu", ["w"], ["y"]), w=(1, 4)), GraphError, "no operator between its inputs"),
        (network(("Add", ["x", "b"], ["a"]), ("Relu", ["a"], ["b"]), ("Relu", ["b"], ["y"])), GraphError, "Relu 'b'"),
        (network(("Add", ["x", "q"], ["y"])), GraphError, "'q'"),
        (
            lambda: onnx_graph(model([node("MatMul", ["x", "w"], ["y"])], {"x": (2**40, 2**40), "w": (2**40, 2**40)})),
            GraphError,
            "do not fit",
        ),
    ],
)
def test_bad_input(call: Callable[[], Any], error: type[NasExtError], value: str) -> None:
    with pytest.raises(error) as caught:
        call()
    assert value in str(caught.value) and "\n" not in str(caught.value)


def test_damaged_and_foreign_files(tmp_path: Path) -> None:
    full, path = residual().SerializeToString(), tmp_path / "cut.onnx"
    cuts = [full[:length] for length in range(0, len(full), 397)]
    for content in (*cuts, b"hello", b"\x89PNG\r\n\x1a\n" + bytes(50), bytes(64)):
        path.write_bytes(content)
        with pytest.raises(GraphError, match=r"cut\.onnx"):
            onnx_graph(path)
