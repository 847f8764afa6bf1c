"""The tables of a latency page, which the command prints too."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from nas_core.report.measured.collection import Collection
from nas_core.report.measured.judged import ALL, Judged, family_columns
from nas_core.report.measured.model_of import AgainstModel
from nas_core.report.tables import Column, Table

_WORST = 12


def family_table(collection: Collection) -> Table:
    """What was measured: a row for each family, and one for all where there are several."""
    names: list[str | None] = [*collection.families]
    if len(names) > 1:
        names.append(None)
    columns = [
        Column("family", "family" if collection.space is None else "space"),
        Column("networks", collection.what, "d"),
        Column("skipped", "skipped", "d"),
        Column("min", "min ms", ".2f"),
        Column("median", "median ms", ".2f"),
        Column("max", "max ms", ".2f"),
        Column("error", "error (%)", ".2f"),
        Column("flops_g", "GFLOPs", ".3f"),
        Column("params_m", "params (M)", ".2f"),
        Column("again", "again", "d"),
        Column("differ", "longer (%)", "+.2f"),
    ]
    rows = [_family_row(collection, name) for name in names]
    used = [c for c in columns if c.key != "skipped" or collection.skipped]
    return Table([c for c in used if any(row.get(c.key) is not None for row in rows)], rows)


def _family_row(collection: Collection, family: str | None) -> dict[str, Any]:
    own = [one for one in collection.networks if family in (None, one.family)]
    again = [one.again_percent for one in own if one.again_percent is not None]
    row: dict[str, Any] = {
        "family": family or ALL,
        "networks": len(own),
        "skipped": sum(family in (None, of) for _, of, _ in collection.skipped),
        "again": len(again) or None,
        "differ": float(np.median(again)) if again else None,
    }
    if own:
        times = [one.latency_ms for one in own]
        row |= {"min": min(times), "median": float(np.median(times)), "max": max(times)}
        for name, field in (("error", "error_percent"), ("flops_g", "flops_g"), ("params_m", "params_m")):
            row[name] = _median([getattr(one, field) for one in own])
    return row


def _median(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None and math.isfinite(value)]
    return float(np.median(known)) if known else None


def error_table(judged: Judged, what: str) -> Table:
    """How good predictions are, family by family; beside them the error on what the model has learned, if known."""
    rows = judged.rows()
    columns = family_columns(judged, f"{what} held out" if judged.held_out else what)
    if judged.held_out and judged.learned is not None and judged.learned.any():
        learned = {row["family"]: row for row in judged.rows(judged.learned)}
        for row in rows:
            row["learned"] = learned.get(row["family"], {}).get("mape")
        columns.append(Column("learned", "of learned ones (%)", ".2f"))
    return Table(columns, rows)


def worst_table(collection: Collection, against: AgainstModel, count: int = _WORST) -> Table:
    """The networks with the largest errors."""
    judged = against.judged
    rows = []
    for place in judged.worst(count):
        one = collection.networks[against.places[place]]
        rows.append(
            {
                "name": one.name,
                "family": one.family,
                "measured": one.latency_ms,
                "error": one.error_percent,
                "predicted": float(judged.predicted[place]),
                "spread": float(judged.spread[place]) if judged.spreads else None,
                "off": float(judged.percent[place]),
                "nodes": one.nodes,
                "flops_g": one.flops_g,
            }
        )
    columns = [
        Column("name", "network" if collection.space is None else "architecture"),
        Column("family", "family"),
        Column("measured", "measured (ms)", ".3f"),
        Column("error", "error (%)", ".2f"),
        Column("predicted", "predicted (ms)", ".3f"),
        Column("spread", "spread (ms)", ".3f"),
        Column("off", "off by (%)", "+.1f"),
        Column("nodes", "operators", "d"),
        Column("flops_g", "GFLOPs", ".3f"),
    ]
    alone = len(set(collection.families)) == 1
    used = [c for c in columns if not (c.key == "family" and alone)]
    return Table([c for c in used if any(row[c.key] is not None for row in rows)], rows)
