"""Published tables for accuracy predictors: networks, accuracies that a search would see, and true accuracies.

On NAS-Bench-101 and -201 a predictor learns validation accuracies and is evaluated on all cells by the mean test
accuracy. The others have one number per network (a validation accuracy, or milliseconds), and are evaluated on all
networks but the training ones.

A protocol ``.._one_percent`` is FlowerFormer's (Hwang et al. 2024, by its released code): half of 14,580 cells of
NAS-Bench-101, or of the 15,625 of NAS-Bench-201, is available, and one hundredth of that half (72, 78) is learned. 40
cells of the other half select the checkpoint, the rest is evaluated. Its figures are means of nine runs, three orders
of the cells with three seeds. Which 14,580 cells and which accuracies its files hold is not published. Here each draw
selects the cells anew, those of NAS-Bench-101 from the ones with a published validation accuracy; validation
accuracies are learned, mean test accuracies evaluated, and the 40 cells are not used.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.parts import published
from nas_core.graph import Graphs, nasbench301_graph, transnasbench_macro_graph

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Table:
    """Networks with observed and true accuracies."""

    graphs: Graphs
    """``(G,)``"""
    rows: NDArray[np.int64]
    """``(R,)`` the networks that can be learned from"""
    observed: Array
    """``(R,)`` what a search would see of those"""
    true: Array
    """``(G,)`` what the order is judged by"""


@dataclass(frozen=True)
class Holdout:
    """Numbers of cells, drawn at random: training cells of one half, evaluation cells of the other."""

    cells: int
    half: int
    """Cells that may be learned from"""
    unused: int = 40
    """Cells of the other half, which choose the checkpoint elsewhere"""


@dataclass(frozen=True)
class AccuracyBenchmark:
    """Benchmark of accuracy predictors."""

    files: tuple[Path, ...]
    load: Callable[[], Table]
    sizes: tuple[int, ...]
    """Networks to learn from"""
    kinds: tuple[int, int]
    """Kinds of operations, and the most nodes"""
    all_judge: bool = False
    """Whether all networks judge, those that were learned too, as in the NN-Former paper"""
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
    read = nasbench301_graph if name.startswith("nasbench301") else transnasbench_macro_graph
    return _whole(Graphs.of([read(row["architecture"]) for row in rows]), [row["val_accuracy"] / 100 for row in rows])


def _fbnet(device: str) -> Table:
    table = published.latency_table("fbnet")
    return _whole(table.graphs, table.latency_ms[:, table.devices.index(device)])


def _whole(graphs: Graphs, values: Array | list[float]) -> Table:
    numbers = np.asarray(values, np.float64)
    return Table(graphs, np.arange(len(graphs)), numbers, numbers)


_NB101, _NB201 = (published.NASBENCH101, published.NASBENCH101_VALID), (published.NASBENCH201,)
_FEW = (50, 100, 172)
BENCHMARKS: dict[str, AccuracyBenchmark] = {
    "nasbench101": AccuracyBenchmark(_NB101, _nasbench101, (100, 172, 424, 4236), (5, 7), all_judge=True),
    "nasbench201": AccuracyBenchmark(_NB201, _nasbench201, (78, 156, 469, 781, 1563), (7, 8), all_judge=True),
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
            (published.FBNET_LATENCY,), functools.partial(_fbnet, device), _FEW, (9, 22), higher_is_better=False
        )
        for device in ("gold_6226", "pixel3")
    },
}
"""By name; FBNet's networks are chains of layers with positions as attributes, measured on a server and on a phone."""
