"""ONNX models as graphs."""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nas_core.graph import GraphError
from nas_core.graph.onnx.encoding import ATTRIBUTES
from nas_core.graph.onnx.operators import KIND_NAMES
from nas_core.graph.onnx.reader import onnx_graph, read_onnx
from tests.contracts.graph_reader import GraphReaderContract
from tests.graph.onnx.models import model, node, onnx, residual, shuffled

pytestmark = pytest.mark.onnx


@functools.cache
def folder() -> Path:
    kept = tempfile.TemporaryDirectory()
    folder.kept = kept  # type: ignore[attr-defined]
    path = Path(kept.name)
    onnx.save(residual(), path / "residual.onnx")
    onnx.save(residual(16), path / "wider.onnx")
    onnx.save(residual(batch="b"), path / "open.onnx")
    (path / "text.onnx").write_text("no network at all")
    return path


class TestReader(GraphReaderContract):
    name = "onnx"

    def inputs(self) -> Sequence[tuple[Any, ...]]:
        created = [(str(folder() / name),) for name in ("residual.onnx", "wider.onnx")]
        return [*created, (str(folder() / "open.onnx"), {"b": 4})]

    def wrong(self) -> Mapping[str, tuple[Any, ...]]:
        return {
            "is not an ONNX": (str(folder() / "text.onnx"),),
            "dimension b of input 'x'": (str(folder() / "open.onnx"),),
        }

    def test_operations_have_names_and_attributes_have_columns(self) -> None:
        """As in the contract, but attributes are plain numbers: predictors code them by sinusoids."""
        assert len(set(self.reader.operations)) == len(self.reader.operations) == 32
        for graph in self.graphs():
            assert graph.attributes is not None and graph.attributes.shape == (len(graph), len(self.reader.attributes))
            assert graph.ops.max() < 32 and graph.attributes.min() >= 0


def test_a_residual_network_is_the_graph_it_looks_like() -> None:
    read = read_onnx(residual())
    expected = ["Input", "Conv", "Relu", "Conv", "Conv", "Add", "GlobalAveragePool", "Flatten", "Gemm"]
    assert list(read.operators) == expected and not read.unknown
    where = {tensor: place for place, tensor in enumerate(read.tensors)}
    assert [where["stem_relu"], where["sum"]] in read.graph.edges.tolist()
    assert len(read.graph.edges) == 9, "weights are no nodes"
    names = [KIND_NAMES[op] for op in read.graph.ops]
    assert names == ["input", "conv", "relu", "conv", "conv", "add", "global_pool", "reshape", "gemm"]


def test_kernels_keep_all_dimensions() -> None:
    nodes = [node("Conv", ["x", "w"], ["y"], kernel_shape=[1, 7], pads=[0, 3, 0, 3], strides=[1, 2])]
    graph = onnx_graph(model(nodes, {"x": (1, 4, 8, 8)}, constants={"w": (6, 4, 1, 7)}))
    assert graph.attributes is not None
    values = dict(zip(ATTRIBUTES, graph.attributes[1].tolist(), strict=True))
    assert values == {
        "kernel_depth": 0, "kernel_height": 1, "kernel_width": 7, "stride": 2, "padding": 6, "dilation": 1,
        "groups": 1, "summed": 4,
    }  # fmt: skip


def test_same_padding_is_worked_out() -> None:
    nodes = [node("Conv", ["x", "w"], ["y"], kernel_shape=[3, 3], auto_pad="SAME_UPPER", strides=[2, 2])]
    graph = onnx_graph(model(nodes, {"x": (1, 4, 8, 8)}, constants={"w": (6, 4, 3, 3)}))
    assert graph.attributes is not None and graph.attributes[1, ATTRIBUTES.index("padding")] == 2


def test_shapes_of_more_than_four_dimensions_keep_their_elements() -> None:
    nodes = [node("Reshape", ["x", "to"], ["split"]), node("Relu", ["split"], ["y"])]
    graph = onnx_graph(model(nodes, {"x": (1, 6, 20)}, constants={"to": np.array([2, 3, 1, 4, 5])}))
    assert graph.shapes is not None
    assert graph.shapes.tolist() == [[1, 6, 20, 0], [6, 1, 4, 5], [6, 1, 4, 5]]


@pytest.mark.parametrize("rename", [False, True])
def test_order_and_names_in_the_file_change_nothing(rename: bool) -> None:
    plain = onnx_graph(branches())
    for seed in range(6):
        assert onnx_graph(shuffled(branches(), seed, rename)) == plain


def branches() -> Any:
    """Four equal branches and two that differ, joined."""
    nodes = []
    for i in range(6):
        nodes.append(node("Conv", ["x", f"w{i}"], [f"conv{i}"], kernel_shape=[1, 1]))
        nodes.append(node("Relu" if i < 5 else "Tanh", [f"conv{i}"], [f"act{i}"]))
    nodes.append(node("Concat", [f"act{i}" for i in range(6)], ["y"], axis=1))
    constants = {f"w{i}": (4 if i < 4 else 8, 3, 1, 1) for i in range(6)}
    return model(nodes, {"x": (1, 3, 4, 4)}, constants=constants)


def test_constants_and_what_follows_from_them_are_no_nodes() -> None:
    nodes = [
        node("Shape", ["x"], ["sizes"]),
        node("Gather", ["sizes", "first"], ["batch"], axis=0),
        node("Concat", ["batch", "rest"], ["to"], axis=0),
        node("Transpose", ["table"], ["turned"], perm=[1, 0]),
        node("Identity", ["x"], ["same"]),
        node("Dropout", ["same"], ["kept", "mask"]),
        node("MatMul", ["kept", "turned"], ["product"]),
        node("Reshape", ["product", "to"], ["y"]),
        node("Tanh", ["product"], ["unused"]),
    ]
    constants = {"first": np.array([0]), "rest": np.array([-1]), "table": (7, 5)}
    read = read_onnx(model(nodes, {"x": ("b", 3, 5)}, constants=constants), batch=2)
    assert list(read.operators) == ["Input", "MatMul", "Reshape"]
    assert read.graph.edges.tolist() == [[0, 1], [1, 2]]
    assert read.graph.shapes is not None and read.graph.shapes[2].tolist() == [2, 21, 0, 0]
    assert read.params.tolist() == [0, 35, 0] and read.params_m == 35 / 1e6


def test_each_part_of_a_split_is_a_node_and_costs_count_once() -> None:
    nodes = [node("Split", ["x"], ["a", "b"], axis=1, num_outputs=2), node("Add", ["a", "b"], ["y"])]
    read = read_onnx(model(nodes, {"x": (1, 6)}))
    assert list(read.operators) == ["Input", "Split", "Split", "Add"]
    assert sorted(read.graph.edges.tolist()) == [[0, 1], [0, 2], [1, 3], [2, 3]]
    assert read.access.tolist() == [0, 12, 0, 9]


def test_files_without_weights_are_the_same_network() -> None:
    bare = residual()
    taken = {tensor.name: tuple(tensor.dims) for tensor in bare.graph.initializer}
    del bare.graph.initializer[:]
    for name, dims in taken.items():
        bare.graph.input.append(onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, dims))
    full, without = read_onnx(residual()), read_onnx(bare, batch=1)
    assert without.graph == full.graph and without.params.tolist() == full.params.tolist()


def test_files_with_weights_are_read_and_damaged_ones_rejected(tmp_path: Path) -> None:
    nodes = [node("MatMul", ["x", "w"], ["h"]), node("Reshape", ["h", "to"], ["y"])]
    large = model(nodes, {"x": (1, 700)}, constants={"w": (700, 900), "to": np.array([1, 30, 30])})
    full, path = large.SerializeToString(), tmp_path / "large.onnx"
    path.write_bytes(full)
    assert len(full) > 2_000_000 and onnx_graph(path) == onnx_graph(large)
    for content in (full[:-1], full[: 2**20 + 1], b"\x89PNG\r\n\x1a\n" * 200_000):
        path.write_bytes(content)
        with pytest.raises(GraphError, match=r"large\.onnx"):
            onnx_graph(path)


def test_external_data_need_not_exist(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(residual(64), path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    (tmp_path / "weights.bin").unlink()
    assert onnx_graph(path) == onnx_graph(residual(64))


def test_external_shapes_are_read(tmp_path: Path) -> None:
    nodes = [node("Reshape", ["x", "to"], ["h"]), node("Relu", ["h"], ["y"])]
    onnx_model, same = (model(nodes, {"x": (1, 12)}, constants={"to": np.array([3, 4])}) for _ in range(2))
    path = tmp_path / "model.onnx"
    onnx.save(same, path, save_as_external_data=True, location="data.bin", size_threshold=0)
    assert onnx_graph(path) == onnx_graph(onnx_model), "small tensors are read"
    (tmp_path / "data.bin").unlink()
    with pytest.raises(GraphError, match="shape of tensor 'h'"):
        onnx_graph(path)


def test_functions_of_a_model_are_opened() -> None:
    body = [node("Mul", ["a", "a"], ["square"]), node("Relu", ["square"], ["b"])]
    function = onnx.helper.make_function("mine", "Squared", ["a"], ["b"], body, [onnx.helper.make_opsetid("", 20)])
    onnx_model = model([node("Squared", ["x"], ["y"], domain="mine")], {"x": (1, 4)}, functions=[function])
    plain = model([node("Mul", ["x", "x"], ["s"]), node("Relu", ["s"], ["y"])], {"x": (1, 4)})
    assert onnx_graph(onnx_model) == onnx_graph(plain)
