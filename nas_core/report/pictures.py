"""The pictures of a search's page."""

from __future__ import annotations

from nas_core.report import plots
from nas_core.report.evaluations import importance
from nas_core.report.genes import genes_tables
from nas_core.report.html import Page
from nas_core.report.run import SearchRun, limit_label

__all__ = ["AXES", "add_pictures"]

AXES = {"latency_ms": "predicted latency (ms)", "params_m": "parameters (M)", "flops_g": "FLOPs (G)"}


def add_pictures(page: Page, run: SearchRun) -> None:
    """The front in each cost, which genes matter, the course of the search, and predicted against measured latency of
    the finalists."""
    if run.costs:
        page.heading("Pareto front")
    for cost in run.costs:
        _add_front(page, run, cost)
    _add_importance(page, run)
    page.heading("Course of the search")
    history = {limit_label(name): values for name, values in run.history().items()}
    pictures = [
        (
            plots.progress(history, f"best {run.metric} so far"),
            "best value so far over the evaluations",
            "Course of each search. Architectures evaluated by an earlier search are not evaluated again.",
        )
    ]
    predicted, measured = run.agreement()
    if predicted:
        picture = plots.agreement({"finalists": (predicted, measured)})
        pictures.append((picture, "predicted against measured latency", "Finalists, measured again after the search."))
    page.images(pictures)


def _add_front(page: Page, run: SearchRun, cost: str) -> None:
    least = {"unlimited": f"least {run.metric}"}
    marks = [
        plots.Mark(
            ", ".join(
                [least.get(name) or limit_label(name) for name in f["best_of"]]
                + [f"measured above {limit_label(name)}" for name in f["over_limit"]]
            ),
            f["metrics"][cost],
            f["metrics"][run.metric],
        )
        for f in run.finalists
        if cost in f["metrics"] and run.metric in f["metrics"]
    ]
    page.image(
        plots.pareto(run.points(cost), marks, run.limits(cost), AXES.get(cost, cost), run.metric),
        f"{run.metric} against {cost} of all evaluated architectures, with their Pareto front",
        "Each dot is an architecture evaluated with inherited weights; circles are the finalists, with the limit within"
        " which one is the best, or above which it was measured.",
    )


def _add_importance(page: Page, run: SearchRun) -> None:
    found = importance(run)
    if found:
        page.heading("Genes that matter")
        page.image(
            plots.bars({AXES.get(name, name): values for name, values in found.items()}, "|Kendall's tau|"),
            f"rank correlation of each gene with {' and '.join(found)}",
            "Over all evaluations: a gene with 1 orders architectures as the metric does, with 0 it says nothing of it."
            " Genes of layers count with their mean. A search that evaluates few bad architectures shows less than"
            " random ones would.",
        )
    for name, table in genes_tables(run.folder).items():
        page.paragraph(
            f"What RankNAS pruned by, {limit_label(name)}: rank correlation with what was evaluated, and with what is"
            " predicted of random architectures for what is limited. The genes that matter most to either stay free."
        )
        page.table(table)
