"""Networks as directed acyclic graphs, and readers of benchmarks and of ONNX files."""

from typing import TYPE_CHECKING

from nas_core.lazy_names import lazy_names

if TYPE_CHECKING:
    from nas_core.graph.graph import FEATURES, Graph, GraphError
    from nas_core.graph.graphs import Dense, Graphs, described, with_static
    from nas_core.graph.io_nodes import common_ends, lacking_ends, open_ended, topological, with_ends
    from nas_core.graph.nasbench101 import AbsentCellError, nasbench101_graph, nasbench101_graphs
    from nas_core.graph.nasbench201 import (
        nasbench201_graph,
        nasbench201_graphs,
        nasbench201_ops,
        nasbench201_string,
        nasbench201_unpruned,
    )
    from nas_core.graph.nasbench301 import nasbench301_graph
    from nas_core.graph.onnx.reader import OnnxNetwork, onnx_graph, read_onnx
    from nas_core.graph.operation import Operation, operation_named
    from nas_core.graph.transnasbench import (
        transnasbench_macro_graph,
        transnasbench_micro_graph,
        transnasbench_micro_graphs,
    )

__all__ = [
    "FEATURES",
    "AbsentCellError",
    "Dense",
    "Graph",
    "GraphError",
    "Graphs",
    "OnnxNetwork",
    "Operation",
    "common_ends",
    "described",
    "lacking_ends",
    "nasbench101_graph",
    "nasbench101_graphs",
    "nasbench201_graph",
    "nasbench201_graphs",
    "nasbench201_ops",
    "nasbench201_string",
    "nasbench201_unpruned",
    "nasbench301_graph",
    "onnx_graph",
    "open_ended",
    "operation_named",
    "read_onnx",
    "topological",
    "transnasbench_macro_graph",
    "transnasbench_micro_graph",
    "transnasbench_micro_graphs",
    "with_ends",
    "with_static",
]

__getattr__, __dir__ = lazy_names(__name__)
