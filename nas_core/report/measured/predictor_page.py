"""The page of a predictor: what it says of architectures whose value is known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nas_core.files import real_path
from nas_core.report.figures import bars
from nas_core.report.measured import figures
from nas_core.report.measured.graph_drawing import graph_lines
from nas_core.report.measured.judged import ALL
from nas_core.report.measured.judged_records import JudgedRecords
from nas_core.report.page import Page
from nas_core.report.plots import COLOURS
from nas_core.report.points import Field, Points, Row
from nas_core.report.tables import Column, Table

_MOST_DRAWN = 60
"""Operations up to which a graph is drawn."""
_LEARNED = "learned"
_SHOWN = 10
"""Rows of the tables of the worst and of the best predicted."""


def write_predictor_report(found: JudgedRecords, path: str | Path) -> Table:
    """Write the page of a predictor against the records of a file; returns the table of its quality."""
    judged = found.judged
    page = Page(
        f"Predictor: {found.model_path.name}",
        f"{found.model.title} predictor of {found.target!r} against {len(judged.measured)} records of"
        f" {found.data_path.name}.",
    )
    page.facts(_facts(found))
    for note in _notes(found):
        page.paragraph(note)
    table = predictor_table(found)
    page.heading("How good it is")
    page.table(table)
    page.paragraph(_legend(found))
    page.heading("Predicted against measured")
    page.plot(
        figures.agreement(judged, range(len(judged.measured)), found.target, relative=False),
        "predicted against known value of each record",
        "A point for each record; on the line both are equal."
        + (" Vertical lines: the predictor's spread, one standard deviation." if judged.spreads else "")
        + " A click shows the graph behind a point.",
    )
    first = found.worst(1)[0]
    page.points(_points(found), first)
    rows = [row for row in table.rows if row["family"] not in (ALL, _LEARNED)]
    if len(rows) > 1:
        errors = {"mean absolute error": {row["family"]: row["mae"] for row in rows}}
        orders = {"Kendall's tau": {row["family"]: row["tau"] or 0.0 for row in rows}}
        for series, title in ((errors, f"mean absolute error ({found.target})"), (orders, "Kendall's tau")):
            page.plot(bars(series, title), f"{title} by {found.by}")
    if judged.spreads:
        page.heading("Whether its spread can be trusted")
        page.plot(
            figures.calibration(found.calibration()),
            "share of known values inside the predictor's range, expected and found",
            "A range of so many standard deviations should hold the share on the horizontal axis. Below the line the"
            " predictor is too sure of itself. Where its parts judged each other on training networks that they had"
            " not seen, its spread holds for such networks; else it is how much its members disagree.",
        )
    page.heading("Where it is wrong most")
    page.table(_records_table(found, found.worst(_SHOWN)))
    page.heading("What it calls best")
    page.table(_records_table(found, found.best(_SHOWN)))
    page.paragraph(_hit(found))
    page.save(path)
    return table


def predictor_table(found: JudgedRecords) -> Table:
    """Its quality: a row for each group of records, and one for all."""
    judged = found.judged
    rows: list[dict[str, Any]] = []
    if found.by is not None:
        for name in dict.fromkeys(judged.families.tolist()):
            if (own := judged.judging & (judged.families == name)).any():
                rows.append({"family": name, **found.quality(own)})
    rows.append({"family": ALL, **found.quality(judged.judging)})
    if judged.held_out and judged.learned is not None and judged.learned.any():
        rows.append({"family": _LEARNED, **found.quality(judged.learned)})
    columns = [
        Column("family", found.by or "records"),
        Column("judged", "held out" if judged.held_out else "number", "d"),
        Column("tau", "Kendall's tau", ".3f"),
        Column("tau_best", "tau, best tenth", ".3f"),
        Column("mae", "mean error", ".4g"),
        Column("mape", "mean error (%)", ".2f"),
        Column("bias", "signed", "+.3g"),
        Column("inside", "within spread (%)", ".1f"),
    ]
    return Table([c for c in columns if any(row.get(c.key) is not None for row in rows)], rows)


def _facts(found: JudgedRecords) -> dict[str, Any]:
    info = found.model.info
    held_out = info.get("held_out") or {}
    own = [f"Kendall's tau {held_out['kendall_tau']:.3f}"] if "kendall_tau" in held_out else []
    own += [f"mean error {held_out['mape_percent']:.2f} %"] if "mape_percent" in held_out else []
    facts = {
        "predictor": str(real_path(found.model_path)),
        "kind": found.model.title
        if found.model.title == found.model.name
        else f"{found.model.name}, {found.model.title}",
        "learned": f"{info.get('graphs')} graphs of at most {info.get('largest')} operations",
        "its own test": f"{', '.join(own)} on {held_out.get('graphs')} held-out graphs" if own else None,
        "data": str(real_path(found.data_path)),
        "value": f"{found.target}, {'lower' if found.lower_is_better else 'higher'} is better",
        "reader": None if found.reader is None else found.reader.name,
        "grouped by": found.by,
    }
    return {name: value for name, value in facts.items() if value is not None}


def _notes(found: JudgedRecords) -> list[str]:
    judged, notes = found.judged, []
    count = len(judged.measured)
    if judged.learned is None:
        notes.append(
            "Which of these records the predictor has learned is not known: its file does not say. Errors on records"
            " that it has learned flatter."
        )
    elif judged.held_out:
        learned = int(judged.learned.sum())
        notes.append(
            f"The predictor has learned {learned} of these {count} graphs; the other {count - learned} judge it, and"
            " all figures below are theirs unless said otherwise. Points of learned ones are pale."
            if learned
            else f"The predictor has learned none of these {count} graphs: all of them judge it."
        )
    else:
        notes.append(
            f"The predictor has learned all of these {count} graphs. Errors on what was learned flatter: judge it by"
            " records of its own, or by its own test (above)."
        )
    if guessed := int(found.guessed.sum()):
        notes.append(
            f"{guessed} records have an operation that no training graph had: their predictions are guesses, and"
            " marked so when they are clicked on."
        )
    if not judged.spreads:
        notes.append("This predictor is one model that nothing judged, and so has no spread.")
    return notes


def _legend(found: JudgedRecords) -> str:
    text = (
        "Kendall's tau: 1 where the order of all pairs is right, 0 where it is a guess. Best tenth: the same among the"
        " tenth with the best known values, where a search ends. Mean error: of the absolute errors; signed: with their"
        " sign."
    )
    if found.judged.spreads:
        text += " Within spread: known values at most one standard deviation from the prediction; 68 % are honest."
    return text


def _hit(found: JudgedRecords) -> str:
    best = found.best(_SHOWN)
    ranks = found.rank()[best]
    return (
        f"The architecture that it calls best is number {ranks[0]} of {len(found.records.graphs)} by its known value;"
        f" the best of these {len(best)} is number {ranks.min()}."
    )


def _points(found: JudgedRecords) -> Points:
    judged = found.judged
    fields = [
        *([Field(found.by)] if found.by else []),
        Field(found.target),
        Field("predicted"),
        *([Field("spread")] if judged.spreads else []),
        Field("error"),
        Field("rank by value", "", 0),
    ]
    ranks = found.rank()
    rows = []
    for place, note in enumerate(found.records.notes):
        values: list[Any] = [
            *([str(judged.families[place])] if found.by else []),
            float(judged.measured[place]),
            float(judged.predicted[place]),
            *([float(judged.spread[place])] if judged.spreads else []),
            float(found.error[place]),
            float(ranks[place]),
        ]
        about = []
        if judged.learned is not None:
            about.append(f"The predictor has {'' if judged.learned[place] else 'not '}learned it.")
        if found.guessed[place]:
            about.append("No training graph had one of its operations: the prediction is a guess.")
        graph = found.records.graphs[place]
        names = [found.operation(op) for op in graph.ops.tolist()]
        told = {name: str(value) for name, value in note.items() if name not in (found.by, found.target)}
        facts = {**told, "operations": str(len(graph)), "edges": str(len(graph.edges))}
        genes = {"operation": names} if len(names) <= _MOST_DRAWN else {}
        told = {**facts, **graph_lines(graph, found.operation)}
        rows.append(Row(f"{place + 1}", values, about=about, facts=told, genes=genes))
    return Points(fields, rows, "record", ("operation",), _kinds(found))


def _kinds(found: JudgedRecords) -> dict[str, tuple[str, str]]:
    """Colour and letter of each operation; letters that two begin with are followed by a number."""
    names = [found.operation(op) for op in sorted(set(found.records.graphs.ops.tolist()))]
    first = [name[0].upper() for name in names]
    kinds = {}
    for place, name in enumerate(names):
        number = first[:place].count(first[place]) + 1
        letter = f"{first[place]}{number}" if first.count(first[place]) > 1 else first[place]
        kinds[name] = (COLOURS[place % len(COLOURS)], letter)
    return kinds


def _records_table(found: JudgedRecords, places: list[int]) -> Table:
    judged, ranks = found.judged, found.rank()
    rows = [
        {
            "record": place + 1,
            "family": str(judged.families[place]),
            "measured": float(judged.measured[place]),
            "predicted": float(judged.predicted[place]),
            "spread": float(judged.spread[place]),
            "error": float(found.error[place]),
            "rank": int(ranks[place]),
            "learned": None if judged.learned is None else "yes" if judged.learned[place] else "no",
        }
        for place in places
    ]
    columns = [
        Column("record", "record", "d"),
        *([Column("family", found.by)] if found.by else []),
        Column("measured", found.target, ".5g"),
        Column("predicted", "predicted", ".5g"),
        *([Column("spread", "spread", ".2g")] if judged.spreads else []),
        Column("error", "error", "+.3g"),
        Column("rank", "rank by value", "d"),
        *([Column("learned", "learned")] if judged.learned is not None else []),
    ]
    return Table(columns, rows)
