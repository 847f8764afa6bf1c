"""The readers by name. A new one is a file of its own and a line here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from nas_core.errors import unknown_choice
from nas_core.graph import nasbench101, nasbench201, nasbench301, translation, transnasbench
from nas_core.graph.graph import Graph

__all__ = ["READERS", "Reader", "reader_for"]


@dataclass(frozen=True)
class Reader:
    """What makes a graph of one kind of architecture, and what the graph's numbers mean."""

    name: str
    """Name of the benchmark or the kind of space."""
    read: Callable[..., Graph]
    """Makes a graph from the benchmark's own description of an architecture."""
    operations: tuple[str, ...]
    """Names of the operation indices, from 0."""
    attributes: tuple[str, ...] = ()
    """Names of the columns of ``Graph.attributes``; none where the graphs have no attributes."""


READERS: dict[str, Reader] = {
    reader.name: reader
    for reader in (
        Reader("nasbench101", nasbench101.nasbench101_graph, nasbench101.OPERATIONS),
        Reader("nasbench201", nasbench201.nasbench201_graph, nasbench201.OPERATIONS),
        Reader("nasbench301", nasbench301.nasbench301_graph, nasbench301.OPERATIONS),
        Reader("transnasbench_micro", transnasbench.transnasbench_micro_graph, transnasbench.MICRO_OPERATIONS),
        Reader("transnasbench_macro", transnasbench.transnasbench_macro_graph, transnasbench.MACRO_OPERATIONS),
        Reader("translation", translation.translation_graph, translation.OPERATIONS, translation.ATTRIBUTES),
    )
}


def reader_for(name: str) -> Reader:
    """The reader of that name.

    Raises:
        UnknownChoiceError: there is none; the message lists them.
    """
    if name not in READERS:
        raise unknown_choice("graph reader", name, READERS)
    return READERS[name]
