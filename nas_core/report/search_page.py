"""HTML page of a search, with tables and plots."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from nas_core.files.writing import write_atomic
from nas_core.locks import is_locked
from nas_core.report import figures
from nas_core.report.architecture import kinds_among
from nas_core.report.figures import Cloud
from nas_core.report.page import ARCHITECTURE_FILE, Field, Page, Points, Row
from nas_core.report.run import (
    SearchRun,
    damaged,
    differing_genes,
    facts_of,
    finalists_table,
    fingerprints_of,
    limit_label,
    limit_notes,
    read_run,
    searched_genes,
)
from nas_core.report.tables import Column, Table
from nas_core.search.strategies.ranknas import importance_of
from nas_core.space import Architecture

_RELOAD_S = 10
"""Seconds after which a browser reloads the page of a running search."""
_FEWEST = 10
"""Smallest number of evaluations for a rank correlation."""


def write_report(folder: str | Path) -> Path:
    """Write ``report.html`` and tables into a run folder; return the page's path.

    Raises:
        SpaceError, ArchitectureError: architectures are not of the run's search space.
    """
    run = read_run(folder)
    with damaged(folder):
        state = state_of(run)
        space = (run.settings.get("space") or {}).get("name", "unknown")
        reload = _RELOAD_S if state in ("running", "unknown") else 0
        lead = f"Search space {space}, {len(run.evaluations)} evaluations."
        page = Page(f"Architecture search: {run.name}", lead, reload)
        if state == "stopped":
            page.paragraph("Not running: the search stopped. The same command continues it.")
        elif state != "ended":
            page.paragraph("The search is running." if state == "running" else "The search has not ended.")
        page.facts(facts_of(run))
        page.details("Fingerprints, versions and other settings", fingerprints_of(run))
        points = points_of([run])
        _add_fronts(page, run, points)
        page.points(points, best_number([run], points), "All evaluations")
        _add_genes(page, run)
        _add_course(page, run)
        _add_finalists(page, run, state)
        _write_evaluations(run)
        page.save(run.folder / "report.html")
    return run.folder / "report.html"


# -- how far it is -----------------------------------------------------------------------------------------------------


State = Literal["running", "stopped", "ended", "unknown"]
"""``stopped``: no process runs the search; ``unknown``: another machine may run it."""


def state_of(run: SearchRun) -> State:
    if run.notes.get("engine"):  # another program drives it, and writes the finalists so far after each evaluation
        return "unknown"
    if run.finalists:
        return "ended"
    searching = is_locked(run.folder / "journal.lock")
    return "unknown" if searching is None else "running" if searching else "stopped"


# -- rows and figures --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Evaluations(Points):
    """Evaluations of one or several searches."""

    numbers: Mapping[tuple[int, str], int] = field(default_factory=dict)
    """(run index, architecture key) -> row index."""


def points_of(runs: Sequence[SearchRun], names: Sequence[str] = ()) -> Evaluations:
    """Return the evaluations of runs as a page table.

    Args:
        names: names of the runs, for a further column.
    """
    metrics = list(dict.fromkeys(name for run in runs for name in (run.metric, *run.costs, *run.others)))
    rows: list[Row] = []
    numbers: dict[tuple[int, str], int] = {}
    for index, run in enumerate(runs):
        finalists = {finalist["key"]: finalist for finalist in run.finalists}
        for evaluation in run.evaluations:
            key = str(evaluation.get("key"))
            numbers.setdefault((index, key), len(rows))
            finalist = finalists.get(key, {})
            metric_values = [run.value(evaluation["metrics"], name) for name in metrics]
            measured = run.value(finalist.get("measured", {}), "latency_ms")
            best = ", ".join(map(limit_label, finalist.get("best_of", ())))
            texts = [limit_label(str(evaluation["search"])), best]
            values = [names[index] if names else None, *metric_values, measured, *texts]
            rows.append(Row(key, values, about=[evaluation.get("error") or ""], genes=evaluation.get("genes", {})))
    fields = [Field("run")]
    for metric in (runs[0].metric_info(name) for name in metrics):
        fields.append(Field(metric.label, metric.unit, int(metric.spec[1]) if metric.spec.endswith("f") else None))
    fields += [Field("measured latency", "ms", 2), Field("search"), Field("best")]
    summary = {"summary": "As a file, for nas-ext extract --arch"} if all(run.from_supernet for run in runs) else {}
    return Evaluations(
        fields,
        rows,
        shown=list(dict.fromkeys(gene for run in runs for gene in searched_genes(run))),
        kinds=kinds_among(row.genes for row in rows),
        file=ARCHITECTURE_FILE | summary,
        numbers=numbers,
    )


def best_number(runs: Sequence[SearchRun], points: Evaluations) -> int:
    """Return the row index of the best finalist; without finalists, of the best evaluation."""
    sign = -1.0 if runs[0].maximised else 1.0
    scored = [
        (not entry.get("best_of"), sign * value, points.numbers.get((index, str(entry.get("key"))), 0))
        for index, run in enumerate(runs)
        for entry in (*run.finalists, *run.evaluations)
        if (value := run.value(entry["metrics"])) is not None
    ]
    return min(scored)[2] if scored else 0


def cloud_of(
    run: SearchRun, points: Evaluations, cost: str, name: str, index: int = 0, search: str | None = None
) -> Cloud:
    """Return points (cost, metric) of a run.

    Args:
        index: index of the run in ``points``.
        search: only evaluations of this search.
    """
    triples = [
        (x, y, points.numbers[index, str(evaluation.get("key"))])
        for evaluation in run.evaluations
        if search in (None, str(evaluation["search"]))
        and (x := run.value(evaluation["metrics"], cost)) is not None
        and (y := run.value(evaluation["metrics"])) is not None
    ]
    return Cloud(name, [x for x, _, _ in triples], [y for _, y, _ in triples], [number for _, _, number in triples])


def finalist_labels(run: SearchRun, points: Evaluations, cost: str, index: int = 0) -> list[figures.Mark]:
    """Return the finalists, labelled with searches whose best they are or whose limits they exceed.

    Args:
        index: index of the run in ``points``.
    """
    labels = []
    for finalist in run.finalists:
        x, y = run.value(finalist["metrics"], cost), run.value(finalist["metrics"])
        best = [f"best {limit_label(s)}" if s == "unlimited" else limit_label(s) for s in finalist["best_of"]]
        name = ", ".join([*best, *(f"measured above {limit_label(search)}" for search in finalist["over_limit"])])
        if x is not None and y is not None:
            labels.append(figures.Mark(name, x, y, points.numbers.get((index, finalist["key"]))))
    return labels


def _add_fronts(page: Page, run: SearchRun, points: Evaluations) -> None:
    searches = list(run.history())
    for cost in run.costs:
        page.heading(f"Pareto front: {run.metric_info(cost).label}")
        clouds = [
            cloud_of(run, points, cost, limit_label(search) if len(searches) > 1 else "evaluated", search=search)
            for search in searches
        ]
        labels = finalist_labels(run, points, cost)
        x, y, limits = run.metric_info(cost).title, run.metric_info(run.metric).title, run.limits(cost)
        if clouds:
            clouds[-1] = replace(clouds[-1], labels=labels)
        page.plot(
            figures.fronts(clouds, x, y, limits, run.maximised),
            f"{y} against {x} of all evaluated architectures, with their Pareto front",
            f"Each dot is an architecture {run.source}. Circles are finalists. A click shows the architecture.",
        )


def _add_course(page: Page, run: SearchRun) -> None:
    page.heading("Course of the search")
    history = {limit_label(name): values for name, values in run.history().items()}
    page.plot(
        figures.progress(history, f"best {run.metric_info(run.metric).title} so far", run.maximised),
        "best value so far over the evaluations",
    )


def importance(run: SearchRun) -> dict[str, dict[str, float]]:
    """Return metric -> gene -> |Kendall's tau|; genes with a value per layer are averaged."""
    space, result = run.space, {}
    for metric in (run.metric, *run.costs) if space else ():
        evaluations = [e for e in run.evaluations if run.value(e["metrics"], metric) is not None]
        if space is not None and len(evaluations) >= _FEWEST:
            rows = space.rows([Architecture(e["genes"]) for e in evaluations])
            result[metric] = importance_of(
                space, rows, np.array([run.value(e["metrics"], metric) for e in evaluations])
            )
    return result


def _add_genes(page: Page, run: SearchRun) -> None:
    if taus_by_metric := importance(run):
        genes = searched_genes(run)
        series = {
            run.metric_info(name).title: {gene: tau for gene, tau in taus.items() if gene in genes}
            for name, taus in taus_by_metric.items()
        }
        page.heading("Genes that matter")
        page.plot(
            figures.bars(series, "|Kendall's tau|"),
            f"rank correlation of each gene with {' and '.join(series)}",
            "1: the gene orders architectures as the metric does. Genes of layers count with their mean.",
        )


# -- finalists ---------------------------------------------------------------------------------------------------------


def _add_finalists(page: Page, run: SearchRun, state: State) -> None:
    page.heading("Finalists")
    if not run.finalists:
        hint = " Start it again to continue it." if state == "stopped" else ""
        page.paragraph(f"The search has not ended; finalists are chosen at its end.{hint}")
        return
    page.table(finalists_table(run))
    for note in limit_notes(run):
        page.paragraph(note)
    page.facts(differing_genes(run))
    write_atomic(run.folder / "finalists.csv", finalists_table(run, genes=True).csv())


def evaluation_records(run: SearchRun) -> list[dict[str, Any]]:
    """Return a flat dictionary per evaluation."""
    metrics = [*dict.fromkeys((run.metric, *run.costs)), *sorted(run.others)]
    metrics = [name for name in metrics if any(run.value(e["metrics"], name) is not None for e in run.evaluations)]
    genes = sorted({name for evaluation in run.evaluations for name in evaluation.get("genes", {})})
    return [
        {
            "index": evaluation.get("index", index),
            "search": evaluation["search"],
            "key": evaluation.get("key"),
            "error": evaluation.get("error"),
            **{name: run.value(evaluation["metrics"], name) for name in metrics},
            **{name: evaluation.get("genes", {}).get(name) for name in genes},
        }
        for index, evaluation in enumerate(run.evaluations)
    ]


def _write_evaluations(run: SearchRun) -> None:
    records = evaluation_records(run)
    lines = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
    write_atomic(run.folder / "evaluations.jsonl", lines)
    rows = [
        {name: " ".join(map(str, value)) if isinstance(value, list) else value for name, value in record.items()}
        for record in records
    ]
    write_atomic(run.folder / "evaluations.csv", Table([Column(name, name) for name in records[0]], rows).csv())
