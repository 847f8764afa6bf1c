"""Files that are no network."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nas_core.graph import GraphError
from nas_core.graph.onnx import onnx_graph
from nas_core.graph.onnx.skim import skim
from tests.graph.onnx.models import chain, model, node, onnx, residual

pytestmark = pytest.mark.onnx


def refused(source: object, said: str) -> None:
    with pytest.raises(GraphError, match=said) as caught:
        onnx_graph(source)
    assert "\n" not in str(caught.value)


def test_every_truncation_is_refused(tmp_path: Path) -> None:
    whole = residual().SerializeToString()
    path = tmp_path / "cut.onnx"
    for length in range(0, len(whole), 97):
        path.write_bytes(whole[:length])
        refused(path, "is empty" if not length else "cut.onnx")


def test_every_truncation_of_a_large_file_is_refused(tmp_path: Path) -> None:
    large = model([node("MatMul", ["x", "w"], ["y"])], {"x": (1, 700)}, constants={"w": (700, 900)})
    whole = large.SerializeToString()
    path = tmp_path / "large.onnx"
    for length in (len(whole) - 1, len(whole) - 20, 2**20 + 1, 2**21):
        path.write_bytes(whole[:length])
        refused(path, "large.onnx is no ONNX")


@pytest.mark.parametrize(
    "content", [b"hello", b"\x89PNG\r\n\x1a\n" + bytes(50), b"PK\x03\x04" + bytes(99), b"\x00" * 64]
)
@pytest.mark.parametrize("repeat", [1, 40_000])
def test_other_files_are_refused(content: bytes, repeat: int, tmp_path: Path) -> None:
    path = tmp_path / "other.onnx"
    path.write_bytes(content * repeat)
    refused(path, "other.onnx")


def test_folders_absent_files_and_other_values_are_refused(tmp_path: Path) -> None:
    refused(tmp_path, "cannot read|no ONNX")
    refused(tmp_path / "absent.onnx", "file not found")
    refused(7, "got int; expected the path")
    refused(b"", "is empty")


def test_files_above_two_gigabytes_are_refused_without_being_read(tmp_path: Path) -> None:
    path = tmp_path / "huge.onnx"
    with path.open("wb") as file:
        file.truncate(2**31 + 5)  # sparse: takes no space
    refused(path, "has 2.0 GB.*external data")


def test_networks_without_operators_or_ends_are_refused() -> None:
    empty = chain(2)
    del empty.graph.node[:]
    refused(empty, "has no operators")
    refused(onnx.ModelProto(), "is no ONNX model")
    only_constants = model([node("Relu", ["w"], ["y"])], {"x": (1, 4)}, constants={"w": (1, 4)})
    refused(only_constants, "no operator turns an input into an output")


def test_cycles_are_refused() -> None:
    looped = model(
        [node("Add", ["x", "b"], ["a"]), node("Relu", ["a"], ["b"]), node("Relu", ["b"], ["y"])], {"x": (1, 4)}
    )
    refused(looped, "3 of 3 operators wait for each other in a cycle")
    itself = model([node("Add", ["x", "y"], ["y"])], {"x": (1, 4)})
    refused(itself, "cycle")


def test_tensors_that_are_made_twice_or_never_are_refused() -> None:
    refused(model([node("Relu", ["x"], ["y"]), node("Tanh", ["x"], ["y"])], {"x": (1, 4)}), "'y' is made twice")
    refused(model([node("Add", ["x", "q"], ["y"])], {"x": (1, 4)}), "reads tensor 'q', which nothing makes")


def test_external_shapes_that_are_absent_are_named(tmp_path: Path) -> None:
    nodes = [node("Reshape", ["x", "to"], ["h"]), node("Relu", ["h"], ["y"])]
    made, same = (model(nodes, {"x": (1, 12)}, constants={"to": np.array([3, 4])}) for _ in range(2))
    path = tmp_path / "model.onnx"
    onnx.save(same, path, save_as_external_data=True, location="data.bin", size_threshold=0)
    assert onnx_graph(path) == onnx_graph(made), "small tensors are read"
    (tmp_path / "data.bin").unlink()
    refused(path, "shape of tensor 'h'")


def test_functions_of_a_model_are_opened() -> None:
    body = [node("Mul", ["a", "a"], ["square"]), node("Relu", ["square"], ["b"])]
    function = onnx.helper.make_function("mine", "Squared", ["a"], ["b"], body, [onnx.helper.make_opsetid("", 20)])
    made = model([node("Squared", ["x"], ["y"], domain="mine")], {"x": (1, 4)}, functions=[function])
    plain = model([node("Mul", ["x", "x"], ["s"]), node("Relu", ["s"], ["y"])], {"x": (1, 4)})
    assert onnx_graph(made) == onnx_graph(plain)


def test_what_a_branch_reads_from_outside_feeds_it() -> None:
    def branch(kind: str) -> onnx.GraphProto:
        info = onnx.helper.make_tensor_value_info("out", 1, [1, 4])
        return onnx.helper.make_graph([node(kind, ["h"], ["out"])], kind, [], [info])

    nodes = [
        node("Relu", ["x"], ["h"]),
        node("If", ["which"], ["y"], then_branch=branch("Tanh"), else_branch=branch("Neg")),
    ]
    made = model(nodes, {"x": (1, 4)}, constants={"which": np.array(True)})
    assert onnx_graph(made, {"y": (1, 4)}).edges.tolist() == [[0, 1], [1, 2]]


def test_attributes_that_do_not_fit_are_refused() -> None:
    wrong = model([node("Softmax", ["x"], ["y"], axis="last")], {"x": (1, 4)})
    with pytest.raises(GraphError, match=r"do not fit their operators|shape of tensor 'y'"):
        onnx_graph(wrong)
    with pytest.raises(GraphError, match="do not fit their operators"):
        onnx_graph(model([node("MatMul", ["x", "w"], ["y"])], {"x": (2**40, 2**40), "w": (2**40, 2**40)}))


def test_skimming_changes_nothing_but_large_values() -> None:
    source = residual(16)
    whole = source.SerializeToString()
    assert onnx.ModelProto.FromString(skim(memoryview(whole), 10**9)) == source
    light = onnx.ModelProto.FromString(skim(memoryview(whole), 64))
    assert light.graph.node == source.graph.node
    for tensor, original in zip(light.graph.initializer, source.graph.initializer, strict=True):
        assert tensor.dims == original.dims and len(tensor.raw_data) in (0, len(original.raw_data))
    assert len(light.SerializeToString()) < len(whole) / 2
