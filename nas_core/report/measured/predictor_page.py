"""HTML page of a predictor's errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nas_core.files.reading import real_path
from nas_core.report.measured import figures
from nas_core.report.measured.evaluation import ALL, RecordEvaluation
from nas_core.report.page import Field, Page, Points, Row
from nas_core.report.plots import COLOURS
from nas_core.report.tables import Column, Table

_MOST_DRAWN = 60
"""Largest number of displayed operations of a graph."""
_SHOWN = 10


def write_predictor_report(result: RecordEvaluation, path: str | Path) -> Table:
    """Write the HTML page of a predictor's errors; return the table of errors."""
    evaluation, model = result.evaluation, result.model
    page = Page(
        f"Predictor: {result.model_path.name}",
        f"{model.title} predictor of {result.target!r} against {len(evaluation.measured)} records of"
        f" {result.data_path.name}.",
    )
    page.facts(
        {
            "predictor": real_path(result.model_path),
            "kind": model.name,
            "fitted to": f"{model.info.get('graphs')} graphs of at most {model.info.get('largest')} operations",
            "data": real_path(result.data_path),
            "value": f"{result.target}, {'lower' if result.lower_is_better else 'higher'} is better",
        }
    )
    page.paragraph(evaluation.note("graphs"))
    if extrapolated := int(result.extrapolated.sum()):
        page.paragraph(f"{extrapolated} records have an operation that no training graph had; see their notes.")
    table = _quality_table(result)
    page.heading("Quality")
    page.table(table)
    page.paragraph(
        "Best tenth: Kendall's tau among the tenth with the best known values. Within std: known values at most one"
        " standard deviation from the prediction, 68 % if the deviations are right."
    )
    page.heading("Predicted against known")
    page.plot(
        figures.agreement(evaluation, range(len(evaluation.measured)), result.target, relative=False),
        "predicted against known value of each record",
        "Vertical lines: one standard deviation of the prediction." if evaluation.has_deviation else "",
    )
    page.points(_points(result), _largest_errors(result)[0])
    if evaluation.has_deviation:
        page.heading("Coverage of prediction intervals")
        page.plot(
            figures.coverage(result.coverage()),
            "share of known values inside the prediction interval, expected and observed",
            "Below the diagonal the predictor understates its errors.",
        )
    page.heading("Largest errors")
    page.table(_records_table(result, _largest_errors(result)))
    page.heading("Best predictions")
    page.table(_records_table(result, result.best(_SHOWN)))
    page.save(path)
    return table


def _largest_errors(result: RecordEvaluation) -> list[int]:
    return result.evaluation.worst(_SHOWN, result.error)


def _quality_table(result: RecordEvaluation) -> Table:
    evaluation = result.evaluation
    groups = {} if result.by is None else {
        name: evaluation.scored & (evaluation.families == name) for name in dict.fromkeys(evaluation.families.tolist())
    }  # fmt: skip
    groups[ALL] = evaluation.scored
    if evaluation.held_out and evaluation.learned is not None:
        groups["learned"] = evaluation.learned
    columns = [
        Column("family", result.by or "records"),
        Column("scored", "held out" if evaluation.held_out else "number", "d"),
        Column("tau", "Kendall's tau", ".3f"),
        Column("tau_best", "tau, best tenth", ".3f"),
        Column("mae", "mean error", ".4g"),
        Column("mape", "mean error (%)", ".2f"),
        Column("bias", "signed", "+.3g"),
        Column("inside", "within std (%)", ".1f"),
    ]
    rows = [{"family": name, **result.quality(mask)} for name, mask in groups.items() if mask.any()]
    return Table(columns, rows).without_empty_columns()


def _points(result: RecordEvaluation) -> Points:
    evaluation, ranks = result.evaluation, result.rank()
    columns: dict[Field, Any] = {Field(result.by): evaluation.families} if result.by else {}
    columns |= {Field(result.target): evaluation.measured, Field("predicted"): evaluation.predicted}
    columns |= {Field("standard deviation"): evaluation.deviation} if evaluation.has_deviation else {}
    columns |= {Field("error"): result.error, Field("rank by value", "", 0): ranks}
    values = zip(*(column.tolist() for column in columns.values()), strict=True)
    rows = []
    for place, (row, note) in enumerate(zip(values, result.records.notes, strict=True)):
        about = []
        if evaluation.learned is not None:
            about.append(f"The predictor has {'' if evaluation.learned[place] else 'not '}learned it.")
        if result.extrapolated[place]:
            about.append("No training graph has one of its operations: the prediction is an extrapolation.")
        graph = result.records.graphs[place]
        names = [result.operation(op) for op in graph.ops.tolist()]
        facts = {name: str(value) for name, value in note.items() if name not in (result.by, result.target)}
        facts |= {"operations": str(len(graph)), "edges": str(len(graph.edges))}
        genes = {"operation": names} if len(names) <= _MOST_DRAWN else {}
        rows.append(Row(f"{place + 1}", row, about=about, facts=facts, genes=genes))
    return Points(list(columns), rows, "record", ("operation",), _kinds(result))


def _kinds(result: RecordEvaluation) -> dict[str, tuple[str, str]]:
    """Return operation -> colour and letter."""
    names = [result.operation(op) for op in sorted(set(result.records.graphs.ops.tolist()))]
    letters = [name[0].upper() for name in names]
    kinds = {}
    for place, (name, letter) in enumerate(zip(names, letters, strict=True)):
        number = str(letters[:place].count(letter) + 1) if letters.count(letter) > 1 else ""
        kinds[name] = (COLOURS[place % len(COLOURS)], f"{letter}{number}")
    return kinds


def _records_table(result: RecordEvaluation, places: list[int]) -> Table:
    evaluation, ranks = result.evaluation, result.rank()
    learned = evaluation.learned
    rows: list[dict[str, Any]] = [
        {
            "record": place + 1,
            "family": str(evaluation.families[place]) if result.by else None,
            "measured": float(evaluation.measured[place]),
            "predicted": float(evaluation.predicted[place]),
            "deviation": float(evaluation.deviation[place]) if evaluation.has_deviation else None,
            "error": float(result.error[place]),
            "rank": int(ranks[place]),
            "learned": None if learned is None else "yes" if learned[place] else "no",
        }
        for place in places
    ]
    columns = [
        Column("record", "record", "d"),
        Column("family", result.by or ""),
        Column("measured", result.target, ".5g"),
        Column("predicted", "predicted", ".5g"),
        Column("deviation", "std", ".2g"),
        Column("error", "error", "+.3g"),
        Column("rank", "rank by value", "d"),
        Column("learned", "learned"),
    ]
    return Table(columns, rows).without_empty_columns()
