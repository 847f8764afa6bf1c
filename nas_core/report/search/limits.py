"""What the measurements of a search's finalists say about its limits."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from nas_core.report.search.run import SearchRun, limit_label

__all__ = ["limit_notes"]


def limit_notes(run: SearchRun) -> list[str]:
    """A sentence for each search whose best architecture by prediction was measured above a limit: which one is taken
    instead, or that none was found within it."""
    notes = []
    for name in dict.fromkeys(search for finalist in run.finalists for search in finalist["over_limit"]):
        above = [finalist for finalist in run.finalists if name in finalist["over_limit"]]
        first = min(above, key=lambda finalist: _rank(run, finalist))
        best = next((finalist for finalist in run.finalists if name in finalist["best_of"]), None)
        label, count = limit_label(name), f"{len(above)} measured"
        if best is None:
            closest = min(above, key=_measured_ms)
            notes.append(
                f"{label}: none of {count} was within it, the closest is {closest['key']} with"
                f" {_measured_ms(closest):.2f} ms; give a lower limit, or fit the latency model to more samples"
            )
        else:
            notes.append(
                f"{label}: {first['key']}, the best by prediction, was measured above it with {_measured_ms(first):.2f}"
                f" ms; {best['key']} is the best of those measured within it"
            )
    return notes


def _rank(run: SearchRun, finalist: Mapping[str, Any]) -> float:
    value = run.value(finalist["metrics"])
    return math.inf if value is None else -value if run.maximised else value


def _measured_ms(finalist: Mapping[str, Any]) -> float:
    return float(finalist["measured"].get("latency_ms") or 0.0)
