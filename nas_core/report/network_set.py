"""Text summary of a folder of measured networks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nas_core.latency.by_graph.dataset.folder import NetworkSet
from nas_core.report.tables import Column, Table


def summary(dataset: NetworkSet) -> str:
    """Return a table of latency (ms) per family and runtime, and the number of networks measured per hour."""
    columns = [Column("family", "family"), Column("networks", "networks", "d"), Column("skipped", "skipped", "d")]
    for runtime in dataset.reference_ms:
        columns += [
            Column(f"{runtime} {name}", f"{runtime} {name} ms" if name == "min" else f"{name} ms", ".2f")
            for name in ("min", "median", "max")
        ]
    names = list(dict.fromkeys(row["family"] for row in dataset.rows))
    lines = [_line(dataset, name) for name in names]
    if len(names) > 1:
        lines.append(_line(dataset, None))
    seconds = [row["seconds"] for row in dataset.rows if "seconds" in row]
    speed = f"{len(seconds) / sum(seconds) * 3600:.0f} networks per hour" if seconds else ""
    return "\n".join([Table(columns, lines).text(), speed]).rstrip()


def agreement(ratios: Mapping[str, NDArray[np.float64]]) -> str:
    """Return a line per runtime that compares second with first measurements.

    Args:
        ratios: runtime -> second / first latency ``(n,)``.
    """
    lines = []
    for runtime, ratio in ratios.items():
        middle = float(np.median(ratio))
        spread = float(np.quantile(np.abs(ratio / middle - 1), 0.68))
        lines.append(
            f"{runtime}: {len(ratio)} networks were measured again; median difference {100 * (middle - 1):+.1f} %, two"
            f" thirds within {100 * spread:.1f} % of the median"
        )
    return "\n".join(lines)


def _line(dataset: NetworkSet, family: str | None) -> dict[str, Any]:
    rows = [row for row in dataset.rows if family in (None, row["family"])]
    good = [row for row in rows if "error" not in row]
    line: dict[str, Any] = {"family": family or "all", "networks": len(good), "skipped": len(rows) - len(good)}
    for runtime in dataset.reference_ms:
        if times := [row["measured"][runtime]["corrected_ms"] for row in good]:
            line |= {
                f"{runtime} min": min(times),
                f"{runtime} median": float(np.median(times)),
                f"{runtime} max": max(times),
            }
    return line
