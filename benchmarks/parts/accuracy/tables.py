"""Published tables for accuracy predictors: networks, observed accuracies and true accuracies.

On NAS-Bench-101 and -201, predictors are trained on validation accuracies and evaluated on all cells by mean test
accuracy. The others have one number per network (validation accuracy, or milliseconds), and predictors are evaluated
outside the training set.

``.._one_percent`` is FlowerFormer's protocol (Hwang et al. 2024, by its code): of half of 14,580 cells of
NAS-Bench-101, or of 15,625 of NAS-Bench-201, one percent (72, 78) is the training set. Of the other half, 40 cells
select the checkpoint and the rest is evaluated. Its figures are means of nine runs; its cells and accuracies are not
published. Here each draw selects new cells, on NAS-Bench-101 among those with a published validation accuracy, and the
40 cells are not used.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.parts import published
from nas_core.graph import Graphs
from nas_core.graph.nasbench301 import nasbench301_graph
from nas_core.graph.transnasbench import transnasbench_macro_graph

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Table:
    """Networks with observed and true accuracies."""

    graphs: Graphs
    """``(G,)``"""
    rows: NDArray[np.int64]
    """``(R,)`` indices of networks for training"""
    observed: Array
    """``(R,)`` observed accuracies of these"""
    true: Array
    """``(G,)`` accuracies for the evaluation"""


@dataclass(frozen=True)
class Holdout:
    """Numbers of random cells: training cells come from one half, evaluation cells from the other."""

    cells: int
    half: int
    """Number of cells from which training cells are drawn"""
    unused: int = 40
    """Number of cells of the other half that are not evaluated"""


@dataclass(frozen=True)
class AccuracyBenchmark:
    """Benchmark of accuracy predictors."""

    files: tuple[Path, ...]
    load: Callable[[], Table]
    sizes: tuple[int, ...]
    """Numbers of training networks"""
    graph_limits: tuple[int, int]
    """Number of kinds of operations, and largest number of nodes"""
    evaluates_all: bool = False
    """True if all networks are evaluated, training networks included, as in the NN-Former paper"""
    holdout: Holdout | None = None
    higher_is_better: bool = True


def _nasbench101() -> Table:
    graphs, test = published.nasbench101()
    return Table(graphs, *published.nasbench101_valid(), test)


def _nasbench201() -> Table:
    graphs, valid, test = published.nasbench201()
    return Table(graphs, np.arange(len(graphs)), valid, test)


@functools.cache
def _zero_cost(name: str) -> Table:
    rows = published.zero_cost(name)
    read_graph = nasbench301_graph if name.startswith("nasbench301") else transnasbench_macro_graph
    return _single_value_table(
        Graphs.of([read_graph(row["architecture"]) for row in rows]), [row["val_accuracy"] / 100 for row in rows]
    )


def _fbnet(device: str) -> Table:
    table = published.latency_table("fbnet")
    return _single_value_table(table.graphs, table.latency_ms[:, table.devices.index(device)])


def _single_value_table(graphs: Graphs, values: Array | list[float]) -> Table:
    numbers = np.asarray(values, np.float64)
    return Table(graphs, np.arange(len(graphs)), numbers, numbers)


_NB101, _NB201 = (published.NASBENCH101, published.NASBENCH101_VALID), (published.NASBENCH201,)
_SMALL_SIZES = (50, 100, 172)
BENCHMARKS: dict[str, AccuracyBenchmark] = {
    "nasbench101": AccuracyBenchmark(_NB101, _nasbench101, (100, 172, 424, 4236), (5, 7), evaluates_all=True),
    "nasbench201": AccuracyBenchmark(_NB201, _nasbench201, (78, 156, 469, 781, 1563), (7, 8), evaluates_all=True),
    "nasbench101_one_percent": AccuracyBenchmark(_NB101, _nasbench101, (72,), (5, 7), holdout=Holdout(14_580, 7_290)),
    "nasbench201_one_percent": AccuracyBenchmark(_NB201, _nasbench201, (78,), (7, 8), holdout=Holdout(15_625, 7_813)),
    "nasbench301": AccuracyBenchmark(
        (published.ZERO_COST,), lambda: _zero_cost("nasbench301/cifar10"), (50, 100), (13, 22)
    ),
    **{
        f"transnas_{task}": AccuracyBenchmark(
            (published.ZERO_COST,), functools.partial(_zero_cost, f"transnas_macro/{name}"), (50, 100), (6, 8)
        )
        for task, name in (("object", "class_object"), ("jigsaw", "jigsaw"))
    },
    **{
        f"fbnet_{device}": AccuracyBenchmark(
            (published.FBNET_LATENCY,), functools.partial(_fbnet, device), _SMALL_SIZES, (9, 22), higher_is_better=False
        )
        for device in ("gold_6226", "pixel3")
    },
}
"""Name -> benchmark; FBNet's networks are chains, measured on a server and on a phone."""
