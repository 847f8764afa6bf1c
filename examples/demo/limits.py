"""Latency limits a search can work under, and measurements good enough to take them from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from nas_core.latency import GeneLatencyModel

RANDOM = 2000
"""Random architectures that show where a space's latencies lie."""
ROOM = 0.03
"""Share of random architectures that are under the tightest limit at least, and as many more under each next one."""
MOST_MAPE_PERCENT, LEAST_TAU = 10.0, 0.6
"""A latency model worse than this was fitted to noise: more is measured."""
MOST_MEASUREMENTS = 3
"""Times the number of samples, at most."""


def spread_limits(model: GeneLatencyModel, count: int) -> list[float]:
    """``count`` limits, evenly spread between the predicted latencies of the smallest and of the largest architecture.

    What is predicted from noisy measurements can have hardly any architecture below it, or a smallest one slower than
    the largest: then limits are those under which a share of random architectures is.
    """
    space = model.space
    low, high = (float(value) for value in model.predict([space.smallest(), space.largest()]))
    rows = space.sample_rows(np.random.default_rng(0), RANDOM)
    random = np.asarray(model.predict_rows(rows), np.float64)
    shares = np.arange(1, count + 1)
    even = low + (high - low) * shares / (count + 1) if high > low else np.quantile(random, shares / (count + 1))
    limits = np.maximum(even, np.quantile(random, np.minimum(ROOM * shares, 1)))
    return list(dict.fromkeys(float(f"{limit:.3g}") for limit in limits))


def is_poor(quality: Mapping[str, Any]) -> bool:
    """Whether a latency model with these metrics says too little about architectures it has not seen."""
    tau = quality["kendall_tau"]
    return quality["mape_percent"] > MOST_MAPE_PERCENT or tau is None or tau < LEAST_TAU
