"""Zero-cost proxies as inputs of a predictor, replaced by their quantiles among the training graphs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from nas_core.errors import ConfigError, DataError
from nas_core.graph import Graphs
from nas_core.graph.graphs import with_static

Scores = Mapping[str, ArrayLike] | Sequence[Mapping[str, float]]
"""Scores by proxy: ``{"nwot": (G,), ..}``, or the result of :func:`nas_core.proxies.zero_cost` for each graph."""
POINTS = 129  # maximum number of stored quantiles per proxy
MIDDLE = 4.0  # input for the median of a proxy; positive, since some networks take logarithms


@dataclass(frozen=True)
class ProxyInputs:
    """Map from values of proxies to quantiles of a normal distribution, fitted to training graphs."""

    names: tuple[str, ...]
    values: tuple[tuple[float, ...], ...]
    """Finite training values of each proxy, ascending"""
    deviations: tuple[tuple[float, ...], ...]
    """Quantile of a normal distribution for each value"""

    @classmethod
    def fit(cls, scores: Scores, graphs: int) -> ProxyInputs:
        names = tuple(scores if isinstance(scores, Mapping) else scores[0])
        table = _table(scores, names, graphs)
        values, deviations = zip(*(_quantiles(column) for column in table), strict=True)
        return cls(names, values, deviations)

    def put(self, graphs: Graphs, scores: Scores | None) -> Graphs:
        """Append mapped scores, clipped to their training range, to the static features of graphs."""
        if scores is None:
            raise ConfigError(
                f"this predictor was fitted with zero-cost proxies; give proxies= with {', '.join(self.names)},"
                " computed by nas_core.proxies or 'nas-ext lab proxies'"
            )
        table = _table(scores, self.names, len(graphs))
        columns = [np.interp(row, x, y) for row, x, y in zip(table, self.values, self.deviations, strict=True)]
        return with_static(graphs, np.stack(columns, 1) + MIDDLE)

    def to_json(self) -> dict[str, Any]:
        pairs = zip(self.values, self.deviations, strict=True)
        return {name: [list(x), list(y)] for name, (x, y) in zip(self.names, pairs, strict=True)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> ProxyInputs:
        sides = [tuple(tuple(float(x) for x in side) for side in pair) for pair in data.values()]
        return cls(tuple(data), tuple(pair[0] for pair in sides), tuple(pair[1] for pair in sides))


def _table(scores: Scores, names: Sequence[str], graphs: int) -> NDArray[np.float64]:
    columns = scores if isinstance(scores, Mapping) else {name: [row.get(name) for row in scores] for name in names}
    try:
        table = np.array([np.asarray(columns[name], np.float64) for name in names])
    except (KeyError, TypeError, ValueError):
        raise DataError(
            f"proxies of {graphs} graphs cannot be read; expected {{'nwot': (G,)}}, or a mapping from names to numbers"
            f" for each graph, with {', '.join(names)}"
        ) from None
    if table.shape != (len(names), graphs):
        raise DataError(f"proxies have shape {table.shape[1:]} for {graphs} graphs; expected one score for each graph")
    if np.isnan(table).any():
        proxy, graph = np.argwhere(np.isnan(table))[0]
        raise DataError(f"proxy {names[proxy]} of graph {graph} (from 0) is NaN; leave the graph or the proxy out")
    return table


def _quantiles(column: NDArray[np.float64]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    from scipy.stats import rankdata  # takes as long to import as torch

    finite = column[np.isfinite(column)]
    if not len(finite):
        return (0.0,), (0.0,)
    ranked = np.clip(column, finite.min(), finite.max())
    values, first = np.unique(ranked, return_index=True)
    deviations = ndtri((rankdata(ranked)[first] - 0.5) / len(ranked))
    places = np.unique(np.linspace(0, len(values) - 1, POINTS).round().astype(np.int64))
    return tuple(values[places].tolist()), tuple(deviations[places].tolist())
