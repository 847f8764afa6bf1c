"""Architectures that were given to a search, beside the best that is known at no more cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nas_core.report.architecture import architecture_picture
from nas_core.report.page.html import Page
from nas_core.report.search.run import SearchRun
from nas_core.report.tables import Column, Table
from nas_core.space import Architecture

__all__ = ["add_given", "given_table"]

_DRAWN = 3
"""Networks of a picture; more would not be read."""


def given_table(run: SearchRun) -> Table:
    """A line for each given architecture, the cheapest first: what was searched for, its costs, and the best of
    all evaluations, this one among them, at no more of the first cost."""
    known = {str(evaluation.get("key")): evaluation["metrics"] for evaluation in reversed(run.evaluations)}
    costs, rows = run.costs, []
    for name, key in run.given.items():
        metrics = known.get(key, {})
        row: dict[str, Any] = {"given": name, run.metric: run.value(metrics)}
        row |= {cost: run.value(metrics, cost) for cost in costs}
        found = _found(run, costs[0], row[costs[0]]) if costs else None
        rows.append({**row, "found": None if found is None else run.value(found["metrics"])})
    rows.sort(key=lambda row: row[costs[0]] or 0.0 if costs else 0.0)
    described = {name: run.described(name) for name in (run.metric, *costs)}
    columns = [
        Column("given", "given"),
        *(Column(name, metric.title, metric.spec) for name, metric in described.items()),
        Column("found", f"best {described[run.metric].label} at no more", described[run.metric].spec),
    ]
    return Table(columns, rows)


def add_given(page: Page, run: SearchRun) -> None:
    """The table, and the layers of given networks beside better ones at no more cost; nothing where none were given."""
    if not run.given:
        return
    page.heading("Compared with")
    table = given_table(run)
    page.table(table)
    if not run.costs:
        return
    genes = {str(evaluation.get("key")): evaluation["genes"] for evaluation in run.evaluations}
    for row in _spread([row for row in table.rows if row["found"] not in (None, row[run.metric])]):
        found, key = _found(run, run.costs[0], row[run.costs[0]]), run.given[row["given"]]
        if found is not None and genes.get(key):
            pair = {row["given"]: Architecture(genes[key]), "found": Architecture(found["genes"])}
            page.image(architecture_picture(pair), f"layers of {row['given']} and of the best at no more cost")


def _found(run: SearchRun, cost: str, most: float | None) -> dict[str, Any] | None:
    """The best of all evaluations at that cost at most, the given ones among them."""
    best, value = None, 0.0
    for evaluation in run.evaluations:
        x, y = run.value(evaluation["metrics"], cost), run.value(evaluation["metrics"])
        if most is None or x is None or y is None or x > most:
            continue
        y = -y if run.maximised else y
        if best is None or y < value:
            best, value = evaluation, y
    return best


def _spread(rows: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
    """At most so many as are drawn, from the cheapest to the dearest."""
    if len(rows) <= _DRAWN:
        return rows
    return [rows[place * (len(rows) - 1) // (_DRAWN - 1)] for place in range(_DRAWN)]
