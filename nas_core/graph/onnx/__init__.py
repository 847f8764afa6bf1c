"""ONNX models as graphs with node features and costs. Needs the extra ``onnx``, which is imported late."""

from nas_core.graph.onnx.corrected import ATTRIBUTES
from nas_core.graph.onnx.encoding import FEATURES, node_features, static_features
from nas_core.graph.onnx.operators import CORRECTED, RELEASED
from nas_core.graph.onnx.reader import OnnxNetwork, describe_unknown, onnx_graph, read_onnx

__all__ = [
    "ATTRIBUTES",
    "CORRECTED",
    "FEATURES",
    "RELEASED",
    "OnnxNetwork",
    "describe_unknown",
    "node_features",
    "onnx_graph",
    "read_onnx",
    "static_features",
]
