"""Networks that learn what the prices of operators leave unexplained."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from nas_core.errors import ConfigError, DataError
from nas_core.graph import Graphs
from nas_core.graph.onnx.operators import KINDS
from nas_core.latency.by_graph.base import LEAST_MS, Floats, GraphLatencyModel, Progress
from nas_core.latency.by_graph.data import NetworkLatencies
from nas_core.latency.by_graph.price_list import CountsConfig
from nas_core.latency.by_graph.prices import costs_by_kind, shrunk_prices
from nas_core.predictor.artifact import NOT_BY_ITSELF
from nas_core.predictor.base import AccuracyModel

__all__ = ["Priced", "check_unpriced"]

PRICES = 3 * KINDS + 1
MOST = 1e9
"""Milliseconds per operator, GFLOP or million elements"""


class Priced(GraphLatencyModel):
    """Mixin in front of a model, which then learns by what factor a network takes longer than its operators cost at the
    prices that :class:`CountsModel` finds on the same networks.

    A network of a family that was never seen has known operators in unknown places: prices carry over to it, and what
    is left to guess is a factor near one instead of the order of magnitude.
    """

    _prices: Floats

    def learn(self, data: NetworkLatencies, seed: int, progress: Progress | None) -> None:
        prices = shrunk_prices(costs_by_kind(data.graphs), data.latency_ms, CountsConfig().shrinkage)
        factors = replace(data, latency_ms=data.latency_ms / _priced_ms(data.graphs, prices))
        super().learn(factors, seed, progress)  # type: ignore[safe-super]
        self._prices = prices

    def estimate(self, graphs: Graphs) -> tuple[Floats, Floats | None]:
        priced_ms = _priced_ms(graphs, self._prices)
        factor, spread = super().estimate(graphs)  # type: ignore[safe-super]
        return priced_ms * factor, None if spread is None else priced_ms * spread

    def _header(self) -> dict[str, Any]:
        return {**super()._header(), "prices": self._prices.tolist()}

    def _restore_header(self, header: Mapping[str, Any]) -> None:
        super()._restore_header(header)
        given = header.get("prices")
        if not isinstance(given, list) or len(given) != PRICES:
            raise DataError(f"no prices of operators, expected {PRICES}")
        if not all(type(price) in (int, float) and 0 <= price < MOST for price in given):
            raise DataError("a price of an operator is no number of milliseconds from 0 on")
        self._prices = np.array(given, np.float64)


def _priced_ms(graphs: Graphs, prices: Floats) -> Floats:
    """Milliseconds ``(G,)`` of the operators at those prices."""
    found: Floats = costs_by_kind(graphs) @ prices[:-1] + prices[-1]
    return np.maximum(found, LEAST_MS)


def check_unpriced(predictor: AccuracyModel, path: str | Path) -> AccuracyModel:
    """The predictor of that file, if it predicts by itself.

    Raises:
        ConfigError: it gives only the factor of a priced latency model.
    """
    about = predictor.info.get("network_latency")
    if isinstance(about, dict) and "prices" in about:
        raise ConfigError(f"{path} is {NOT_BY_ITSELF}")
    return predictor
