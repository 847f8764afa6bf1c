"""Dimensions that a model leaves open."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nas_core.errors import ConfigError
from nas_core.graph import GraphError
from nas_core.graph.onnx import onnx_graph, read_onnx
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


@pytest.mark.parametrize(
    ("settings", "error", "said"),
    [
        ({}, GraphError, "dimension b of input 'x' .b, t, 4. has no number; give shapes=.*or batch=1"),
        ({"batch": 1}, GraphError, "dimension t of input 'x' .1, t, 4. has no number"),
        ({"shapes": {"q": (1, 2, 4)}}, ConfigError, "no tensor and no open dimension 'q'; its inputs are x .b, t, 4."),
        ({"shapes": {"q": 4}}, ConfigError, "no open dimension 'q'"),
        ({"shapes": {"x": (1, 4)}}, ConfigError, "expected 3 dimensions"),
        ({"shapes": {"x": (1, 0, 4)}}, ConfigError, "whole numbers above 0"),
        ({"shapes": {"x": "1x5x4"}}, ConfigError, "whole numbers above 0"),
        ({"shapes": {"x": (1, 2, 4), "z": (2, 2, 4)}}, ConfigError, "dimension 'b' .* is 1 and 2"),
        ({"shapes": (1, 2, 4)}, ConfigError, "shapes are a tuple"),
        ({"batch": 0}, ConfigError, "batch is 0"),
        ({"batch": True}, ConfigError, "batch is True"),
    ],
)
def test_others_are_refused_in_one_line(settings: dict[str, Any], error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said) as caught:
        onnx_graph(two_inputs(), **settings)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("settings", "typed"),
    [
        ({"shapes": (1, 2, 4)}, "expected --shapes input=1,3,224,224"),
        ({"shapes": {"x": (1, 0, 4)}}, "such as --shapes x=1,3,224,224"),
        ({"batch": 0}, "--batch is 0; expected a whole number above 0"),
    ],
)
def test_who_types_a_command_reads_options(settings: dict[str, Any], typed: str) -> None:
    with pytest.raises(ConfigError) as caught:
        onnx_graph(two_inputs(), **settings)
    assert typed in caught.value.command_line and "--" not in str(caught.value)


def test_a_fixed_batch_can_be_another() -> None:
    fixed = residual(batch=1)
    inferred = onnx.shape_inference.infer_shapes(fixed)
    for source in (fixed, inferred):
        assert onnx_graph(source, batch=4) == onnx_graph(residual(batch="b"), batch=4)


def test_shapes_that_do_not_fit_are_named() -> None:
    nodes = [node("MatMul", ["x", "w"], ["h"]), node("Relu", ["h"], ["y"])]
    made = model(nodes, {"x": ("b", "t")}, constants={"w": (4, 5)})
    with pytest.raises(GraphError, match=r"MatMul reads tensors of shapes \(2, 3\) and \(4, 5\), which do not fit"):
        onnx_graph(made, {"x": (2, 3)})


def test_an_input_without_a_shape() -> None:
    bare = two_inputs()
    bare.graph.input[0].type.tensor_type.ClearField("shape")
    with pytest.raises(GraphError, match="input 'x' has no shape"):
        onnx_graph(bare)
    assert len(onnx_graph(bare, {"x": (1, 2, 4), "z": (1, 2, 4)})) == 3


def test_an_unknown_operator_leaves_a_shape_open_until_it_is_given() -> None:
    made = model([node("Odd", ["x"], ["a"], domain="mine"), node("Relu", ["a"], ["y"])], {"x": (1, 4)})
    with pytest.raises(GraphError, match=r"tensor 'a', which mine\.Odd gives"):
        onnx_graph(made)
    shapes = read_onnx(made, shapes={"a": (1, 6)}, warn=False).graph.shapes
    assert shapes is not None and shapes[2].tolist() == [1, 6, 0, 0]


def test_shapes_that_the_file_states_are_used_where_they_hold() -> None:
    made = model([node("Odd", ["x"], ["a"], domain="mine"), node("Relu", ["a"], ["y"])], {"x": ("b", 4)})
    made.graph.value_info.append(onnx.helper.make_tensor_value_info("a", 1, ["b", 6]))
    graph = read_onnx(made, batch=3, warn=False).graph
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
    made = model(nodes, {"x": (1, 3, "h", 8)}, constants=constants)
    read = read_onnx(made, shapes={"h": 10})
    assert list(read.operators) == ["Input", "Reshape"]
    assert read.graph.shapes is not None and read.graph.shapes[1].tolist() == [1, 48, 5, 0]
