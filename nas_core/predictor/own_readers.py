"""The project's graph readers: benchmarks and ONNX files. Kinds of network read their own architectures."""

from __future__ import annotations

from nas_core.graph import nasbench101, nasbench201, nasbench301, transnasbench
from nas_core.graph.onnx import ATTRIBUTES, CORRECTED, onnx_graph
from nas_core.predictor.readers import Reader

__all__ = [
    "NASBENCH101",
    "NASBENCH201",
    "NASBENCH201_UNPRUNED",
    "NASBENCH301",
    "ONNX",
    "TRANSNASBENCH_MACRO",
    "TRANSNASBENCH_MICRO",
]

NASBENCH101 = Reader("nasbench101", nasbench101.nasbench101_graph, nasbench101.OPERATIONS)
NASBENCH201 = Reader("nasbench201", nasbench201.nasbench201_graph, nasbench201.OPERATIONS)
NASBENCH201_UNPRUNED = Reader("nasbench201_unpruned", nasbench201.nasbench201_unpruned, nasbench201.OPERATIONS)
NASBENCH301 = Reader("nasbench301", nasbench301.nasbench301_graph, nasbench301.OPERATIONS)
TRANSNASBENCH_MICRO = Reader(
    "transnasbench_micro", transnasbench.transnasbench_micro_graph, transnasbench.MICRO_OPERATIONS
)
TRANSNASBENCH_MACRO = Reader(
    "transnasbench_macro", transnasbench.transnasbench_macro_graph, transnasbench.MACRO_OPERATIONS
)
ONNX = Reader("onnx", onnx_graph, CORRECTED, ATTRIBUTES)
