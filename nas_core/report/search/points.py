"""The evaluations behind a page's figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from nas_core.errors import NasExtError
from nas_core.report.architecture import kinds_among, layers_of
from nas_core.report.points import ARCHITECTURE_FILE, Field, Points, Row
from nas_core.report.search.genes import searched_genes
from nas_core.report.search.run import SearchRun, limit_label

__all__ = ["Evaluations", "points_of"]

MEASURED = Field("measured latency", "ms", 2)
EXTRACTED = "As a file, for nas-ext extract --arch"
"""Command that uses the file of an architecture, for runs that name a supernet."""


@dataclass(frozen=True)
class Evaluations(Points):
    """The evaluations of one search, or of several."""

    numbers: Mapping[tuple[int, str], int] = field(default_factory=dict)
    """(place of the run, key of the architecture) -> number of its first evaluation."""

    def number(self, run: int, key: str) -> int | None:
        return self.numbers.get((run, key))


def points_of(runs: Sequence[SearchRun], names: Sequence[str] = ()) -> Evaluations:
    """The evaluations of one run, or of several with their names.

    Raises:
        SpaceError: what a run's settings hold is no space.
    """
    metrics = list(dict.fromkeys(name for run in runs for name in (run.metric, *run.costs, *run.others)))
    rows: list[Row] = []
    numbers: dict[tuple[int, str], int] = {}
    for place, run in enumerate(runs):
        finalists = {finalist["key"]: finalist for finalist in run.finalists}
        for evaluation in run.evaluations:
            key = str(evaluation.get("key"))
            numbers.setdefault((place, key), len(rows))
            finalist = finalists.get(key, {})
            values = [run.value(evaluation["metrics"], name) for name in metrics]
            best = ", ".join(map(limit_label, finalist.get("best_of", ())))
            name = names[place] if place < len(names) else ""
            measured = run.value(finalist.get("measured", {}), "latency_ms")
            texts = [limit_label(str(evaluation["search"])), best]
            genes = evaluation.get("genes", {})
            rows.append(
                Row(key, [name, *values, measured, *texts], about=[evaluation.get("error") or ""], genes=genes,
                    drawing=_drawing(genes))
            )  # fmt: skip
    described = [runs[0].described(name) for name in metrics]
    numeric = [*(Field.of(one.label, one.unit, one.spec) for one in described), MEASURED]
    fields = [Field("run"), *numeric, Field("search"), Field("best")]
    used = [place for place in range(len(fields)) if any(row.values[place] not in (None, "") for row in rows)]
    return Evaluations(
        [fields[place] for place in used],
        [_only(row, used) for row in rows],
        shown=list(dict.fromkeys(gene for run in runs for gene in searched_genes(run))),
        kinds=kinds_among(row.genes for row in rows),
        file=ARCHITECTURE_FILE | ({"summary": EXTRACTED} if all(run.from_supernet for run in runs) else {}),
        numbers=numbers,
    )


def _only(row: Row, places: Sequence[int]) -> Row:
    return Row(row.key, [row.values[place] for place in places], "", row.about, {}, row.genes, row.drawing)


def _drawing(genes: Mapping[str, Any]) -> dict[str, dict[str, tuple[Any, ...]]]:
    """What is drawn, where that is not the genes as they are."""
    if not genes:
        return {}
    try:
        own, drawn = layers_of(genes)
    except NasExtError:
        return {}
    return {} if drawn == own else drawn
