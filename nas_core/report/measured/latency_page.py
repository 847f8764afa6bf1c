"""The page of a latency data set: what was measured and how well, and what a model predicts of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from nas_core.files import real_path
from nas_core.latency.by_genes.drift import running_median
from nas_core.report.figures import bars
from nas_core.report.measured import figures
from nas_core.report.measured.collection import Collection, Floats
from nas_core.report.measured.judged import ALL, AVERAGE
from nas_core.report.measured.model_of import AgainstModel, against_model, opened_model
from nas_core.report.measured.reading import read_collection
from nas_core.report.measured.rows import points_of
from nas_core.report.measured.tables import error_table, family_table, worst_table
from nas_core.report.page import Page
from nas_core.report.tables import Table

_NEIGHBOURS = 9
"""Networks over which the median error runs."""


def write_latency_report(
    data: str | Path, path: str | Path, model: str | Path | None = None, runtime: str | None = None
) -> list[Table]:
    """Write the page of a folder of ``nas-ext latency dataset`` or of a file of ``nas-ext latency collect``; returns
    its tables of families, of measurements and of errors.

    Args:
        path: the page.
        model: a file of ``nas-ext latency train`` for a folder, of ``nas-ext latency fit`` for a file.
        runtime: of a folder; default: the model's where the folder has it, else the first one measured.

    Raises:
        DataError, ConfigError, SpaceError: see :func:`read_collection` and :func:`against_model`.
    """
    collection = read_collection(data, runtime)
    against = None
    if model is not None:
        opened = opened_model(model, data)
        own = opened.info.get("runtime")
        if runtime is None and own in collection.runtimes:
            collection = read_collection(data, str(own))
        against = against_model(collection, opened, model)
    page = Page(f"Latency of {collection.what}: {real_path(collection.path).name}", _lead(collection))
    for warning in collection.warnings:
        page.paragraph(warning)
    page.facts(collection.facts)
    page.details("All settings and versions", collection.details)
    tables = [family_table(collection)]
    _add_measured(page, collection, tables[0])
    rows, first = points_of(collection, against), _first(collection, against)
    if against is None:
        _add_sizes(page, collection)
        page.points(rows, first)
    else:
        _add_agreement(page, against)
        page.points(rows, first)
        tables.append(_add_errors(page, collection, against))
        _add_sizes(page, collection)
    _add_noise(page, collection, against)
    page.save(path)
    return tables


def _lead(collection: Collection) -> str:
    times = collection.values("latency_ms")
    where = collection.machine.get("device_name", "an unnamed machine")
    span = f"{times.min():.3g} to {times.max():.3g} ms"
    return f"{len(times)} {collection.what}, {span}, in {collection.runtime} on {where}."


def _add_measured(page: Page, collection: Collection, table: Table) -> None:
    page.heading("What was measured")
    page.table(table)
    again = ""
    if np.isfinite(collection.values("again_percent")).any():
        again = " Again: networks measured a second time, and by how much longer they took (median)."
    page.paragraph(
        f"Latencies have the machine's drift divided out. Error: the standard error of a latency,"
        f" {collection.error_is}; here, as FLOPs and parameters, the median of each row. It says how far a label may be"
        f" off by chance; what lasts longer than the measurement of a network it does not see.{again}"
    )
    if collection.skipped:
        page.details("Why networks were skipped", {name: reason for name, _, reason in collection.skipped})


def _add_agreement(page: Page, against: AgainstModel) -> None:
    judged = against.judged
    page.heading("Predicted against measured")
    page.facts(against.facts)
    for note in against.notes:
        page.paragraph(note)
    page.plot(
        figures.agreement(judged, against.places, "ms"),
        "predicted against measured latency of each network, coloured by family",
        "A point for each. On the line prediction and measurement are equal, in the band they differ by at most 10 %."
        + (" Vertical lines: the model's spread, one standard deviation." if judged.spreads else "")
        + " A click shows what is behind a point.",
    )


def _add_errors(page: Page, collection: Collection, against: AgainstModel) -> Table:
    judged = against.judged
    page.heading("Errors by family" if len(collection.families) > 1 else "Errors")
    table = error_table(judged, collection.what)
    page.table(table)
    page.paragraph(
        "All in percent. Mean error: of the absolute errors relative to the measurements. Within spread: measurements"
        " at most one standard deviation from their prediction; of an honest spread that is 68. Signed: the mean with"
        " its sign, above 0 where the model predicts too much."
    )
    families = [row for row in judged.rows() if row["family"] not in (ALL, AVERAGE)]
    if len(families) > 1:
        errors = {"mean error": {row["family"]: row["mape"] for row in families}}
        shares = {"within 10 %": {row["family"]: row["within"] for row in families}}
        if judged.spreads:
            shares["within the spread"] = {row["family"]: row["inside"] for row in families}
        for series, title in ((errors, "mean error (%)"), (shares, "share of networks (%)")):
            page.plot(bars(series, title), f"{title} by family")
    page.heading("Where it is wrong most")
    page.table(worst_table(collection, against))
    return table


def _add_sizes(page: Page, collection: Collection) -> None:
    shown = [
        (name, title)
        for name, title in (("flops_g", "FLOPs (G)"), ("params_m", "parameters (M)"))
        if np.isfinite(collection.values(name)).any()
    ]
    if not shown:
        return
    page.heading("Size and latency")
    for name, title in shown:
        page.plot(
            figures.sizes(collection, name, title),
            f"measured latency over {title}",
            "Colours and shapes are families; a click on the legend hides one." if len(collection.families) > 1 else "",
        )


def _first(collection: Collection, against: AgainstModel | None) -> int:
    """What is shown before anything was clicked on: the worst prediction, or the network of median latency."""
    if against is not None:
        return against.places[against.judged.worst(1)[0]]
    order = np.argsort(collection.values("latency_ms"), kind="stable")
    return int(order[len(order) // 2])


def _add_noise(page: Page, collection: Collection, against: AgainstModel | None) -> None:
    page.heading("How noisy the measurement was")
    reference = collection.values("reference_ms")
    state = 100 * (reference / np.median(reference) - 1)
    low, high = np.quantile(state, (0.05, 0.95))
    page.paragraph(
        f"The reference, timed between the passes of every network, was {low:+.1f} to {high:+.1f} % off its usual time"
        f" in nine of ten cases, and {state.min():+.1f} to {state.max():+.1f} % at most. Without a reference this drift"
        " would stand in the latencies; it is divided out."
    )
    page.plot(
        figures.drift(collection),
        "how much slower than usual the machine was over the collection",
        "The line is the reference. Points: how much longer each took than with the drift divided out. Where points"
        " leave the line, something slowed only one of the two.",
    )
    if np.isfinite(collection.values("error_percent")).sum() > 1:
        page.plot(
            figures.repeats(collection),
            "standard error of each network's latency, by family",
            f"How far each label may be off by chance. Standard error: {collection.error_is}.",
        )
    for sentence in [*_again(collection), *_residuals(collection, against)]:
        page.paragraph(sentence)


def _again(collection: Collection) -> list[str]:
    """How second measurements agree."""
    differ, raw = (collection.values(name) for name in ("again_percent", "again_raw_percent"))
    known = np.isfinite(differ)
    if not known.any():
        if collection.space is not None:
            return []
        return [
            "No network was measured a second time. What disturbs a whole run is not seen within it: 'nas-ext latency"
            " dataset --out FOLDER --again 20' measures some once more, and this page then tells how both agree."
        ]
    return [
        f"{int(known.sum())} networks were measured a second time: {_shift(differ[known])} with the drift divided out,"
        f" {_shift(raw[np.isfinite(raw)])} as measured."
    ]


def _shift(percent: Floats) -> str:
    middle = float(np.median(percent))
    within = float(np.quantile(np.abs(percent - middle), 0.68))
    return f"{middle:+.1f} % (median; two thirds are within {within:.1f} % of that)"


def _residuals(collection: Collection, against: AgainstModel | None) -> list[str]:
    """Whether measured / predicted drifts over the collection, as measured and divided out."""
    if against is None or len(against.places) < 3 * _NEIGHBOURS:
        return []
    order = np.argsort(collection.values("when")[against.places], kind="stable")
    raw = collection.values("raw_ms")[against.places]
    drifts = []
    for times in (raw, against.judged.measured):
        ratio = (times / against.judged.predicted)[order]
        if not np.isfinite(ratio).all():
            return []
        run = running_median(ratio, _NEIGHBOURS)
        drifts.append(100 * float(np.std(run / np.median(run))))
    return [
        f"Measured / predicted, as a running median over {_NEIGHBOURS} networks in the order of measurement, varies by"
        f" {drifts[0]:.1f} % as measured and by {drifts[1]:.1f} % with the drift divided out (standard deviation)."
        " Part of it is the model's own error."
    ]
