"""The evaluations behind a page's figures, as the data from which it shows an architecture that is pointed at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nas_core.report.genes import searched_genes
from nas_core.report.run import SearchRun, limit_label
from nas_core.space.architecture import FORMAT, VERSION

__all__ = ["Points", "points_of"]


@dataclass(frozen=True)
class Points:
    """All evaluations of a page, numbered; figures refer to them by their numbers."""

    content: Mapping[str, Any]
    """What the page's script reads."""
    rows: Mapping[tuple[int, str], int]
    """(number of the run, key of the architecture) -> number of its first evaluation."""

    def number(self, run: int, key: str) -> int | None:
        return self.rows.get((run, key))


def points_of(runs: Sequence[SearchRun], names: Sequence[str] = ()) -> Points:
    """The evaluations of one run, or of several with their names.

    Raises:
        SpaceError: what a run's settings hold is no space.
    """
    metrics = list(dict.fromkeys(name for run in runs for name in (run.metric, *run.costs, *run.others)))
    rows: list[dict[str, Any]] = []
    numbers: dict[tuple[int, str], int] = {}
    for place, run in enumerate(runs):
        finalists = {finalist["key"]: finalist for finalist in run.finalists}
        for evaluation in run.evaluations:
            key = str(evaluation.get("key"))
            numbers.setdefault((place, key), len(rows))
            finalist = finalists.get(key, {})
            row = {
                "key": key,
                "search": limit_label(str(evaluation["search"])),
                "metrics": [run.value(evaluation["metrics"], name) for name in metrics],
                "genes": evaluation.get("genes", {}),
                "run": names[place] if place < len(names) else None,
                "measured_ms": run.value(finalist.get("measured", {}), "latency_ms"),
                "best_of": ", ".join(map(limit_label, finalist.get("best_of", ()))),
                "error": evaluation.get("error"),
            }
            rows.append({name: value for name, value in row.items() if value not in (None, "")})
    described = [runs[0].described(name) for name in metrics]
    content = {
        "metrics": [{"title": one.label, "unit": one.unit, "digits": _digits(one.spec)} for one in described],
        "searched": list(dict.fromkeys(gene for run in runs for gene in searched_genes(run))),
        "rows": rows,
        "file": {"format": FORMAT, "version": VERSION},
    }
    return Points(content, numbers)


def _digits(spec: str) -> int | None:
    """Decimals of a format such as ``.3f``; None where it means significant digits."""
    return int(spec[1:-1]) if spec.endswith("f") else None
