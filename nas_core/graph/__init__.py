"""Networks as directed acyclic graphs, and readers of benchmarks and ONNX files."""

from typing import TYPE_CHECKING

from nas_core.lazy_names import lazy_names

if TYPE_CHECKING:
    from nas_core.graph.graph import Graph, GraphError
    from nas_core.graph.graphs import Graphs, with_operations
    from nas_core.graph.nasbench201 import nasbench201_string
    from nas_core.graph.onnx.reader import read_onnx
    from nas_core.graph.operation import Operation

__all__ = [
    "Graph",
    "GraphError",
    "Graphs",
    "Operation",
    "nasbench201_string",
    "read_onnx",
    "with_operations",
]

__getattr__, __dir__ = lazy_names(__name__)
