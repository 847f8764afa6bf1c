"""Registry of graph readers for benchmarks and search spaces."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from nas_core.errors import unknown_choice
from nas_core.graph import nasbench101, nasbench201, nasbench301, transnasbench
from nas_core.graph.graph import Graph, GraphError
from nas_core.graph.graphs import with_operations
from nas_core.graph.onnx.encoding import ATTRIBUTES
from nas_core.graph.onnx.operators import KIND_NAMES
from nas_core.graph.onnx.reader import onnx_graph
from nas_core.graph.operation import operation_named
from nas_core.models.kind import NETWORK_KINDS, ModelKind
from nas_core.registry import Registry
from nas_core.space.architecture import Architecture


@dataclass(frozen=True)
class Reader:
    """Conversion of the architectures of a benchmark or search space to graphs."""

    name: str
    read: Callable[..., Graph]
    """Function from the benchmark's description of an architecture to its graph."""
    operations: tuple[str, ...]
    """Names of the operation indices."""
    attributes: tuple[str, ...] = ()
    """Names of the columns of ``Graph.attributes``."""
    genes: bool = False
    """True if the argument of ``read`` is an :class:`Architecture`."""

    def from_json(self, value: Any) -> Graph:
        """Return the graph of an architecture in JSON.

        Args:
            value: argument of ``read``, arguments by name (``{"matrix": .., "ops": ..}``), or genes.
        """
        if self.genes:
            if not isinstance(value, Mapping):
                raise GraphError(f"got {type(value).__name__}; expected the genes of an architecture")
            is_architecture = isinstance(value.get("genes"), Mapping)
            return self.read(Architecture.from_json(value) if is_architecture else Architecture(value))
        signature = inspect.signature(self.read)
        try:
            bound = signature.bind(**value) if isinstance(value, Mapping) else signature.bind(value)
        except TypeError:
            got = f"parts {', '.join(sorted(map(str, value)))}" if isinstance(value, Mapping) else type(value).__name__
            raise GraphError(f"got {got}; expected the keys {', '.join(signature.parameters)}") from None
        return self.read(*bound.args, **bound.kwargs)

    def with_operations(self, graph: Graph) -> Graph:
        """Add descriptions of operations to a graph, if all names of operations have one."""
        if graph.operations is not None or any(operation_named(name) is None for name in self.operations):
            return graph
        return with_operations(graph, self.operations)


READERS: Registry[Reader] = Registry(
    "graph reader",
    "nas_ext.graph_readers",
    {
        "nasbench101": "nas_core.predictor.readers:NASBENCH101",
        "nasbench201": "nas_core.predictor.readers:NASBENCH201",
        "nasbench201_unpruned": "nas_core.predictor.readers:NASBENCH201_UNPRUNED",
        "nasbench301": "nas_core.predictor.readers:NASBENCH301",
        "transnasbench_micro": "nas_core.predictor.readers:TRANSNASBENCH_MICRO",
        "transnasbench_macro": "nas_core.predictor.readers:TRANSNASBENCH_MACRO",
        "onnx": "nas_core.predictor.readers:ONNX",
    },
    Reader,
)
"""Graph readers of benchmarks; :func:`reader_for` also returns readers for types of network."""


def reader_names() -> list[str]:
    return list(dict.fromkeys([*READERS.names(), *NETWORK_KINDS.names()]))


def reader_of_kind(kind: ModelKind) -> Reader:
    return Reader(kind.name, kind.graph, kind.operations, kind.attributes, genes=True)


def reader_for(name: str) -> Reader:
    """Return the graph reader of a benchmark, or of a type of network, by name.

    Raises:
        UnknownChoiceError: no reader has the name.
    """
    if name in READERS.names():
        return READERS.get(name)
    if name not in NETWORK_KINDS.names():
        raise unknown_choice("graph reader", name, reader_names())
    return reader_of_kind(NETWORK_KINDS.get(name))


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
ONNX = Reader("onnx", onnx_graph, KIND_NAMES, ATTRIBUTES)
