"""Networks that are fed other sizes than they were exported for."""

from __future__ import annotations

from typing import Any

import pytest

from nas_core.graph import GraphError
from nas_core.graph.onnx import FEATURES, read_onnx

onnx = pytest.importorskip("onnx", reason="onnx is not installed")
from tests.graph.onnx.models import model, node, residual  # noqa: E402 - needs onnx

pytestmark = pytest.mark.onnx


def one(operator: str, x: tuple[int, ...], w: tuple[int, ...], y: tuple[int, ...], **settings: Any) -> Any:
    """An operator whose output the file gives a shape, as exporters do."""
    made = model([node(operator, ["x", "w"], ["y"], **settings)], {"x": x}, constants={"w": w})
    made.graph.output[0].CopyFrom(onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, y))
    return made


@pytest.mark.parametrize("features", FEATURES)
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
def test_what_no_runtime_could_compute_is_refused(made: Any, features: str) -> None:
    with pytest.raises(GraphError, match=r"reads tensors of shapes \(.*\) and \(.*\), which do not fit; give"):
        read_onnx(made, features=features, warn=False)


@pytest.mark.parametrize(
    "made",
    [
        one("Add", (2, 1, 8), (4, 1), (2, 4, 8)),
        one("MatMul", (2, 6, 3), (3, 5), (2, 6, 5)),
        one("MatMul", (3,), (3, 5), (5,)),
        one("MatMul", (2, 3), (3,), (2,)),
        one("Gemm", (3, 2), (5, 3), (2, 5), transA=1, transB=1),
        one("Conv", (1, 6, 8), (4, 3, 3), (1, 4, 6), kernel_shape=[3], group=2),
    ],
)
def test_what_fits_is_read(made: Any) -> None:
    assert len(read_onnx(made).graph) == 2


def test_other_channels_than_exported_for() -> None:
    assert read_onnx(residual(), shapes={"x": (1, 3, 32, 32)}).flops_g > read_onnx(residual()).flops_g
    with pytest.raises(GraphError, match="Conv reads tensors of shapes"):
        read_onnx(residual(), shapes={"x": (1, 4, 16, 16)})
