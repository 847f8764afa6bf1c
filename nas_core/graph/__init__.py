"""Networks as directed acyclic graphs, and readers of benchmarks and ONNX files."""

from typing import TYPE_CHECKING

from nas_core.lazy_names import lazy_names

if TYPE_CHECKING:
    from nas_core.graph.graph import Graph, GraphError
    from nas_core.graph.graphs import Graphs, with_operations
    from nas_core.graph.nasbench101 import nasbench101_graph
    from nas_core.graph.nasbench201 import nasbench201_graph, nasbench201_string
    from nas_core.graph.nasbench301 import nasbench301_graph
    from nas_core.graph.onnx.reader import onnx_graph, read_onnx
    from nas_core.graph.operation import Operation
    from nas_core.graph.transnasbench import transnasbench_macro_graph, transnasbench_micro_graph

__all__ = [
    "Graph",
    "GraphError",
    "Graphs",
    "Operation",
    "nasbench101_graph",
    "nasbench201_graph",
    "nasbench201_string",
    "nasbench301_graph",
    "onnx_graph",
    "read_onnx",
    "transnasbench_macro_graph",
    "transnasbench_micro_graph",
    "with_operations",
]

__getattr__, __dir__ = lazy_names(__name__)
