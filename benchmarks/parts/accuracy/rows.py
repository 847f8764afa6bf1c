"""Rows of the table of accuracy predictors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.parts.accuracy.methods import METHODS, settings_of

PUBLISHED_TAU = {
    "nasbench101": {100: 0.709, 172: 0.765, 424: 0.809, 4236: 0.877},
    "nasbench201": {156: 0.804, 469: 0.860, 781: 0.879, 1563: 0.890},
    "nasbench101_one_percent": {72: 0.763},
    "nasbench201_one_percent": {78: 0.836},
}
"""Best published figures: of NN-Former, and in FlowerFormer's protocol of FlowerFormer with FGP."""
AIMS = {
    "nasbench101": {100: 0.74, 172: 0.79, 424: 0.83, 4236: 0.885},
    "nasbench201": {156: 0.82, 469: 0.87, 781: 0.885, 1563: 0.89},
}
_AVERAGED = ("tau_top_tenth", "tau_as_told", "within_1", "within_2")

Record = Mapping[str, Any]


def has_current_settings(row: Record) -> bool:
    """Return True if a record has the current settings, or names none."""
    method = row["method"]
    return row.get("settings") in (None, settings_of(method, row["size"]) if method in METHODS else row.get("settings"))


def summary(records: Sequence[Record]) -> list[dict[str, Any]]:
    """Return means over draws for each benchmark, size and method.

    Records with outdated settings are excluded. Of records evaluated on different numbers of networks, those with the
    most remain.
    """
    groups: dict[tuple[str, int, str], list[Record]] = {}
    for record in records:
        if record["on"] == "test" and has_current_settings(record):
            groups.setdefault((record["benchmark"], record["size"], record["method"]), []).append(record)
    return [_row(*key, group) for key, group in sorted(groups.items())]


def _row(benchmark: str, size: int, method: str, records: Sequence[Record]) -> dict[str, Any]:
    judged = max((record.get("judged", "all") for record in records), key=lambda n: np.inf if n == "all" else n)
    draws = sorted((r for r in records if r.get("judged", "all") == judged), key=lambda record: record["draw"])
    taus = [record["tau"] for record in draws]
    row = {
        "benchmark": benchmark,
        "size": size,
        "method": method,
        "draws": len(taus),
        "tau": round(float(np.mean(taus)), 4),
        "deviation": round(float(np.std(taus, ddof=1)), 4) if len(taus) > 1 else None,
        "taus": [round(tau, 4) for tau in taus],
        "judged": judged,
        "fit_cpu_s": round(float(np.mean([record["fit_cpu_s"] for record in draws])), 1),
        "paper": PUBLISHED_TAU.get(benchmark, {}).get(size),
        "aim": AIMS.get(benchmark, {}).get(size),
        **{name: draws[0][name] for name in ("settings", "precision", "cells") if name in draws[0]},
    }
    if ranks := _complete_values(draws, "best_of_50"):
        row |= {"best_of_50": float(np.median(ranks)), "best_of_50_each": ranks}
    row |= {name: _mean(values) for name in _AVERAGED if (values := _complete_values(draws, name))}
    if parts := _complete_values(draws, "parts"):
        row["parts"] = {name: _mean([part[name] for part in parts]) for name in parts[0]}
    return row


def _complete_values(records: Sequence[Record], name: str) -> list[Any]:
    values = [record[name] for record in records if name in record]
    return values if len(values) == len(records) else []


def _mean(values: Sequence[float]) -> float:
    return round(float(np.mean(values)), 4)
