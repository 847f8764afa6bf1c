"""Networks that learn what the prices of operators leave unexplained."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from nas_core.errors import DataError
from nas_core.graph import Graphs
from nas_core.predictor.costs import KINDS, costs_by_kind, shrunk_prices
from nas_core.predictor.networks.base import LEAST_MS, Floats, NetworkLatencyModel, Progress
from nas_core.predictor.networks.linear import CountsConfig

__all__ = ["Priced"]

PRICES = 3 * KINDS + 1


class Priced(NetworkLatencyModel):
    """Mixin in front of a model, which then learns by what factor a network takes longer than its operators cost at the
    prices that :class:`CountsModel` finds on the same networks.

    A network of a family that was never seen has known operators in unknown places: prices carry over to it, and what
    is left to guess is a factor near one instead of the order of magnitude.
    """

    _prices: Floats

    def _fit(self, graphs: Graphs, latency_ms: Floats, seed: int, progress: Progress | None) -> None:
        self._prices = shrunk_prices(costs_by_kind(graphs), latency_ms, CountsConfig().shrinkage)
        super()._fit(graphs, latency_ms / self._priced_ms(graphs), seed, progress)  # type: ignore[safe-super]

    def _predict(self, graphs: Graphs) -> tuple[Floats, Floats | None]:
        priced_ms = self._priced_ms(graphs)
        factor, spread = super()._predict(graphs)  # type: ignore[safe-super]
        return priced_ms * factor, None if spread is None else priced_ms * spread

    def _priced_ms(self, graphs: Graphs) -> Floats:
        found: Floats = costs_by_kind(graphs) @ self._prices[:-1] + self._prices[-1]
        return np.maximum(found, LEAST_MS)

    def _header(self) -> dict[str, Any]:
        return {**super()._header(), "prices": self._prices.tolist()}

    def _restore_header(self, header: Mapping[str, Any]) -> None:
        super()._restore_header(header)
        self._prices = np.array(header["prices"], np.float64)
        if self._prices.shape != (PRICES,) or not np.isfinite(self._prices).all() or self._prices.min() < 0:
            raise DataError(f"prices of shape {self._prices.shape}, expected {PRICES} numbers from 0 on")
