"""The figures of a search's page, each with a still picture for readers without scripts."""

from __future__ import annotations

import re
from typing import Any

from nas_core.files import write_atomic
from nas_core.report import plots
from nas_core.report.page import interactive
from nas_core.report.page.html import Page
from nas_core.report.page.interactive import Cloud, Label
from nas_core.report.search.evaluations import importance
from nas_core.report.search.genes import searched_genes
from nas_core.report.search.parallel import axes_of
from nas_core.report.search.points import Evaluations
from nas_core.report.search.pruning import genes_tables
from nas_core.report.search.run import SearchRun, limit_label
from nas_core.search.engine import GIVEN

__all__ = ["add_figures", "axis_title", "cloud_of", "finalist_labels"]


def axis_title(run: SearchRun, name: str) -> str:
    """A metric's name on an axis, with the unit."""
    return run.described(name).title


def add_figures(page: Page, run: SearchRun, points: Evaluations) -> None:
    """The front in each cost with the architecture that is clicked on, parallel coordinates, which genes matter, the
    course of the search, and predicted against measured latency of the finalists."""
    if run.costs:
        page.heading("Pareto front")
    for cost in run.costs:
        _add_front(page, run, points, cost)
    page.points(points, _first_shown(run, points), "All evaluations")
    _add_parallel(page, run)
    _add_importance(page, run)
    page.heading("Course of the search")
    history = {limit_label(name): values for name, values in run.history().items() if name != GIVEN}
    best = f"best {run.described(run.metric).title} so far"
    page.plot(
        interactive.progress(history, best, run.maximised),
        "best value so far over the evaluations",
        "Course of each search. Architectures evaluated by an earlier search are not evaluated again.",
        plots.progress(history, best, run.maximised),
    )
    labels = _measured(run, points)
    if labels:
        page.plot(
            interactive.agreement(labels),
            "predicted against measured latency",
            "Finalists, measured again after the search.",
            plots.agreement({"finalists": run.agreement()}),
        )


def cloud_of(
    run: SearchRun, points: Evaluations, cost: str, name: str, place: int = 0, search: str | None = None
) -> Cloud:
    """The evaluations of a run, or of one of its searches, that have the cost and what was searched for."""
    shown = [
        (run.value(e["metrics"], cost), run.value(e["metrics"]), points.number(place, str(e.get("key"))))
        for e in run.evaluations
        if search in (None, str(e["search"]))
    ]
    known = [(x, y, number) for x, y, number in shown if x is not None and y is not None and number is not None]
    return Cloud(name, [x for x, _, _ in known], [y for _, y, _ in known], [number for _, _, number in known])


def finalist_labels(run: SearchRun, points: Evaluations, cost: str, place: int = 0) -> list[Label]:
    """The finalists, with the limit within which one is the best, or above which it was measured."""
    found = []
    for finalist in run.finalists:
        x, y = run.value(finalist["metrics"], cost), run.value(finalist["metrics"])
        best = [
            f"best {limit_label(search)}" if search == "unlimited" else limit_label(search)
            for search in finalist["best_of"]
        ]
        name = ", ".join([*best, *(f"measured above {limit_label(search)}" for search in finalist["over_limit"])])
        if x is not None and y is not None:
            found.append(Label(name, x, y, points.number(place, finalist["key"])))
    return found


def _add_front(page: Page, run: SearchRun, points: Evaluations, cost: str) -> None:
    searches = list(run.history())
    clouds = [
        cloud_of(run, points, cost, limit_label(search) if len(searches) > 1 else "evaluated", search=search)
        for search in searches
    ]
    labels = finalist_labels(run, points, cost)
    x, y, limits = axis_title(run, cost), axis_title(run, run.metric), run.limits(cost)
    if clouds:
        clouds[-1] = Cloud(clouds[-1].name, clouds[-1].x, clouds[-1].y, clouds[-1].numbers, labels)
    marks = [plots.Mark(label.name, label.x, label.y) for label in labels]
    still = plots.pareto(run.points(cost), marks, limits, x, y, run.maximised)
    write_atomic(run.folder / f"front-{re.sub(r'[^A-Za-z0-9_.-]', '_', cost)}.png", still)
    page.plot(
        interactive.fronts(clouds, x, y, limits, run.maximised),
        f"{y} against {x} of all evaluated architectures, with their Pareto front",
        f"Each dot is an architecture {run.source}: point at it to read it, click to see it below."
        " Circles are the finalists, with the limit within which one is the best, or above which it was measured.",
        still,
    )


def _add_parallel(page: Page, run: SearchRun) -> None:
    axes = axes_of(run)
    known = [(run.value(evaluation["metrics"]), number) for number, evaluation in enumerate(run.evaluations)]
    colour = [value for value, _ in known if value is not None]
    numbers = [number for value, number in known if value is not None]
    if len(axes) < 2 or len(colour) < 2:
        return
    title = axis_title(run, run.metric)
    page.heading("Genes and metrics side by side")
    page.plot(
        interactive.parallel(axes, colour, title, run.maximised, numbers),
        "parallel coordinates of metrics and genes of all evaluated architectures",
        "A line for each architecture; the good ones stand out from the ground. Drag along an axis to keep what passes"
        " through there, also in the table and in the fronts; a click on the axis undoes it. Drag a name to move its"
        " axis. Genes of layers stand with their mean; failed evaluations are left out. Needs WebGL; the ranges can be"
        " typed, too.",
    )


def _add_importance(page: Page, run: SearchRun) -> None:
    found = importance(run)
    if found:
        page.heading("Genes that matter")
        genes = searched_genes(run)
        series = {
            axis_title(run, name): {gene: tau for gene, tau in taus.items() if gene in genes}
            for name, taus in found.items()
        }
        page.plot(
            interactive.bars(series, "|Kendall's tau|"),
            f"rank correlation of each gene with {' and '.join(series)}",
            "Over all evaluations: a gene with 1 orders architectures as the metric does, with 0 it says nothing of it."
            " Genes of layers count with their mean. A search that evaluates few bad architectures shows less than"
            " random ones would.",
            plots.bars(series, "|Kendall's tau|"),
        )
    for name, table in genes_tables(run.folder).items():
        page.paragraph(
            f"What RankNAS pruned by, {limit_label(name)}: rank correlation with what was evaluated, and with what is"
            " predicted of random architectures for what is limited. The genes that matter most to either stay free."
        )
        page.table(table)


def _measured(run: SearchRun, points: Evaluations) -> list[Label]:
    labels: list[Label] = []
    for finalist in run.finalists:
        predicted, measured = (run.value(finalist[told], "latency_ms") for told in ("metrics", "measured"))
        if predicted and measured:
            labels.append(Label("", measured, predicted, points.number(0, finalist["key"])))
    return labels


def _first_shown(run: SearchRun, points: Evaluations) -> int:
    """The best of the finalists, or the best evaluation so far."""
    candidates: list[dict[str, Any]] = [f for f in run.finalists if f["best_of"]] or run.finalists or run.evaluations
    scored = [(run.value(one["metrics"]), str(one.get("key"))) for one in candidates]
    known = sorted(((-value if run.maximised else value), key) for value, key in scored if value is not None)
    return next((number for _, key in known if (number := points.number(0, key)) is not None), 0)
