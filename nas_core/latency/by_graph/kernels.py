"""The operators of networks as kernels: what each computes and between which others, equal ones of a network once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nas_core.graph import Graphs
from nas_core.graph.onnx import ATTRIBUTES
from nas_core.graph.onnx.operators import CORRECTED
from nas_core.latency.by_graph.price_list import check_kinds

_GROUPS, _SUMMED = ATTRIBUTES.index("groups"), ATTRIBUTES.index("summed")
_KERNEL = slice(ATTRIBUTES.index("kernel_depth"), ATTRIBUTES.index("kernel_width") + 1)
_CONVOLUTIONS = tuple(CORRECTED.index(name) for name in ("conv", "conv_transpose"))
_SORTS = (
    ("conv", "conv_transpose", "gemm", "matmul", "attention", "recurrent"),
    ("batch_norm", "relu", "clip", "sigmoid", "swish", "gelu", "add", "mul", "div", "math", "logic", "cast"),
    ("layer_norm", "group_norm", "softmax", "max_pool", "average_pool", "global_pool", "reduce"),
)
"""Kinds of operators by how compilers fuse them: products, element by element, reductions; all others move data."""
_SORT = np.array([next((i for i, sort in enumerate(_SORTS) if kind in sort), len(_SORTS)) for kind in CORRECTED])
SURROUNDINGS = 2 * (len(_SORTS) + 1)
"""Columns of :attr:`Kernels.neighbours`."""
_MULTIPLE = 8
"""What matrix units of devices want sizes to be multiples of."""
NUMBERS = 3 + 4 + len(ATTRIBUTES) + 5
"""Columns of :attr:`Kernels.numbers`."""


@dataclass(frozen=True)
class Kernels:
    """R kernels of G networks, those of a network one after another; operators that only rename memory are none."""

    counts: NDArray[np.float32]
    """``(R,)`` how often the network has it."""
    first: NDArray[np.int64]
    """``(G + 1,)`` where a network's kernels begin."""
    kinds: NDArray[np.int64]
    """``(R,)``"""
    work: NDArray[np.float32]
    """``(R, 2)`` GFLOPs and million elements of memory access."""
    numbers: NDArray[np.float32]
    """``(R, 20)`` logarithms of FLOPs, parameters and memory access, of the shape and the attributes; whether it is a
    depth-wise, a grouped or a 1 x 1 convolution, and whether channels and what is summed are multiples of 8."""
    neighbours: NDArray[np.float32]
    """``(R, 8)`` 1 for each sort of operators (products, element by element, reductions, others) among those that it
    reads from, and among those that read from it."""

    @classmethod
    def of(cls, graphs: Graphs) -> Kernels:
        """All kernels of these graphs, which have attributes, shapes and costs of the corrected encoding.

        Raises:
            GraphError: an operation index of no kind.
        """
        assert graphs.attributes is not None and graphs.shapes is not None and graphs.costs is not None
        check_kinds(graphs)
        network = np.repeat(np.arange(len(graphs)), graphs.sizes)
        costs = graphs.costs.astype(np.float64)
        busy = np.flatnonzero((costs[:, 0] + costs[:, 2]) > 0)
        near = _neighbours(graphs)[busy]
        kinds, network = graphs.ops[busy].astype(np.int64), network[busy]
        columns = (network, kinds, graphs.attributes[busy], graphs.shapes[busy], costs[busy], near)
        first, counts = _once(columns)
        rows = busy[first]
        return cls(
            counts.astype(np.float32),
            np.searchsorted(network[first], np.arange(len(graphs) + 1)),
            kinds[first],
            (costs[rows][:, [0, 2]] / (1e9, 1e6)).astype(np.float32),
            _numbers(kinds[first], graphs.attributes[rows], graphs.shapes[rows], costs[rows]),
            near[first].astype(np.float32),
        )

    def rows_of(self, networks: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Rows of the kernels of these networks ``(r,)``, and the place of each one's network among them ``(r,)``."""
        sizes = self.first[networks + 1] - self.first[networks]
        place = np.repeat(np.arange(len(networks)), sizes)
        within = np.arange(len(place)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        return self.first[networks][place] + within, place


def _neighbours(graphs: Graphs) -> NDArray[np.bool_]:
    """``(nodes of all graphs, 8)``."""
    begin = np.repeat(np.cumsum(graphs.sizes) - graphs.sizes, graphs.edge_counts)
    source, target = graphs.edges[:, 0] + begin, graphs.edges[:, 1] + begin
    sorts, found = _SORT[graphs.ops], np.zeros((len(graphs.ops), SURROUNDINGS), np.bool_)
    found[target, sorts[source]] = True
    found[source, SURROUNDINGS // 2 + sorts[target]] = True
    return found


def _once(columns: tuple[NDArray[np.generic], ...]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The first of equal rows, in their order by the first column, and how many are equal to it."""
    wide = np.hstack([np.asarray(column, np.float64).reshape(len(columns[0]), -1) for column in columns])
    bytes_of = np.ascontiguousarray(wide).view(np.dtype((np.void, wide.shape[1] * wide.itemsize))).ravel()
    _, first, counts = np.unique(bytes_of, return_index=True, return_counts=True)
    order = np.argsort(first)
    return first[order], counts[order]


def _numbers(
    kinds: NDArray[np.int64],
    attributes: NDArray[np.float32],
    shapes: NDArray[np.float32],
    costs: NDArray[np.float64],
) -> NDArray[np.float32]:
    convolution = np.isin(kinds, _CONVOLUTIONS)
    groups, summed = attributes[:, _GROUPS], attributes[:, _SUMMED]
    flags = (
        convolution & (groups > 1) & (summed == 1),
        convolution & (groups > 1) & (summed > 1),
        convolution & (attributes[:, _KERNEL].max(1) == 1),
        np.where(convolution, shapes[:, 1], shapes.max(1)) % _MULTIPLE == 0,
        summed % _MULTIPLE == 0,
    )
    logs = np.log1p(np.maximum(np.hstack([costs, shapes, attributes]), 0.0))
    return np.hstack([logs, np.stack(flags, 1)]).astype(np.float32)
