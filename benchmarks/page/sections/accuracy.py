"""Predictors of accuracy: who orders networks how well, what a search gets from it, and whether the spread holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from benchmarks.page.pictures import COLOURS, INK, thousands
from benchmarks.page.results import Results
from benchmarks.page.section import Picture, Section
from benchmarks.page.sections import accuracy_tables
from benchmarks.page.sections.accuracy_tables import HEADLINE, SAMPLE, SHORT, STAR, Rows, shown
from benchmarks.page.words import count, fixed, joined, spread, table
from benchmarks.parts.accuracy.methods import TEST_LABELS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["BENCHMARKS", "HEADLINE", "QUALITY", "tau"]

BENCHMARKS = {"nasbench101": "NAS-Bench-101", "nasbench201": "NAS-Bench-201"}
ONE = ", members 1, depth 6, epochs 100, batch_size 16, lr 0.001, equal_sizes False, targets normal"
"""How the result calls one network of ``best`` alone."""
METHODS = {
    "best": "the mixture: recipe `best`",
    "statistics": "statistics alone: recipe `statistics`",
    "gaussian-process": "Gaussian processes alone",
    "boosted-trees": "boosted trees alone",
    "graf processes and trees": "GRAF, with our processes and trees",
    "graf forest": "GRAF, random forest",
    "lightgbm statistics": "LightGBM on the statistics, L1",
    "lightgbm": "LightGBM on one-hot codes, L1",
    "ridge": "ridge on one-hot codes",
    "gcn": "GCN",
}
NETWORKS = {
    "best, networks alone": "five networks of `best`, released masks",
    "best, networks alone, paper masks": "five networks of `best`, the paper's masks",
    "best, networks alone, members 1": "one network of `best`, larger batches, released masks",
    f"paper{ONE}": "one network of `best`, released masks",
    f"true siblings{ONE}": "one network of `best`, the paper's masks",
    "paper": "recipe `paper`, released masks",
}
PARTS = {
    f"paper{ONE}": "as released",
    f"true siblings{ONE}": "siblings as the paper defines them",
    f"global{ONE}": "global attention",
    f"asma, vanilla ffn{ONE}": "without the graph part of the feed-forward",
    f"global, vanilla ffn{ONE}": "without both",
    f"nar position{ONE}": "NAR-Former's position codes",
    f"laplacian position{ONE}": "Laplacian position codes",
}
DRAWN = {"best": (COLOURS[0], "o-", "the mixture (best)"), "statistics": (COLOURS[2], "o-", "statistics"),
         "graf processes and trees": (COLOURS[5], "^--", "GRAF, GP and trees"),
         "graf forest": (COLOURS[1], "^--", "GRAF, forest"),
         "lightgbm": (COLOURS[7], "^--", "LightGBM"), "gcn": (COLOURS[3], "s--", "GCN")}  # fmt: skip
Column = tuple[str, int]


def tau(results: Results, benchmark: str, method: str = "best") -> Mapping[str, Any]:
    """What one method reached from as many cells as the page speaks of first."""
    return results.row("predictor_quality", benchmark=benchmark, size=HEADLINE[benchmark], method=method)


def _found(results: Results) -> Rows:
    return {(row["benchmark"], row["size"], row["method"]): row for row in results.rows("predictor_quality")}


def _order(found: Rows, columns: Sequence[Column], papers: Mapping[Column, float | None]) -> str:
    """The table of tau on the benchmarks of the paper, without networks alone."""
    rows = [["NN-Former, as published", *(fixed(papers.get(column), 3) for column in columns)]]
    rows += shown(found, columns, METHODS)
    return table(["Kendall's tau (draws)", *(f"{SHORT[name]}: {count(size)}" for name, size in columns)], rows)


def _share(row: Mapping[str, Any]) -> str:
    return fixed(row["network_share"], 2) + accuracy_tables.marks(row)


def _alone(found: Rows, columns: Sequence[Column], papers: Mapping[Column, float | None]) -> str:
    """The table of NN-Former's own rows, and its share of the mixture where that was measured."""
    used = [column for column in columns if any((*column, method) in found for method in NETWORKS)]
    rows = [["as published", *(fixed(papers.get(column), 3) for column in used)], *shown(found, used, NETWORKS)]
    mixed = [found.get((*column, "best"), {}) for column in used]
    if any("network_share" in row for row in mixed):
        rows.append(["its share of `best`", *(_share(row) if "network_share" in row else "" for row in mixed)])
    head = ["NN-Former alone, Kendall's tau (draws)", *(f"{SHORT[name]}: {count(size)}" for name, size in used)]
    return table(head, rows)


def _marks(found: Rows) -> str:
    """What the signs behind figures mean, as far as there are any."""
    cells = "".join(
        x for line in shown(found, sorted({key[:2] for key in found}), {**METHODS, **NETWORKS}) for x in line
    )
    judged = sorted({row["judged"] for row in found.values() if row["judged"] != "all"})
    told = [f"{STAR} Measured with settings of an earlier release."] if STAR in cells else []
    if SAMPLE in cells:
        told.append(f"{SAMPLE} Judged by {joined(count(each) for each in judged)} cells, drawn at random.")
    return " ".join(told)


def _upper_bound(found: Rows) -> str:
    """Return the table of what labels without noise would give."""
    labels = {**METHODS, **NETWORKS}
    rows = []
    for (benchmark, size, method), row in sorted(found.items()):
        learned = method.removesuffix(TEST_LABELS)
        if learned == method:
            continue
        rows.append(
            [f"{labels[learned]}, {SHORT[benchmark]}: {count(size)}", fixed(found[benchmark, size, learned]["tau"], 3),
             f"{fixed(row['tau'], 3)} ({row['draws']})"]
        )  # fmt: skip
    return table(["Kendall's tau (draws)", "one-run validation labels", "mean test labels: upper bound"], rows)


def _quality(results: Results) -> Mapping[str, str]:
    found = _found(results)
    columns = sorted({key[:2] for key in found if key[0] in BENCHMARKS})
    papers = {key[:2]: row["paper"] for key, row in found.items() if row["paper"]}
    middle = next(size for _, size, method in found if method == f"paper{ONE}")
    fits = {
        method: [row["fit_cpu_s"] for (name, _, each), row in found.items() if each == method and name in BENCHMARKS]
        for method in ("best", "statistics")
    }
    first = {name: (name, size) for name, size in HEADLINE.items()}
    alone = found[*first["nasbench101"], "paper"]
    drawn = {key: row["deviation"] for key, row in found.items() if key[0] in BENCHMARKS and row["draws"] > 2}
    deviations = [value for key, value in drawn.items() if key[2] in fits]
    return {
        **{f"{name}_best": fixed(found[*column, "best"]["tau"], 3) for name, column in first.items()},
        **{f"{name}_statistics": fixed(found[*column, "statistics"]["tau"], 3) for name, column in first.items()},
        **{f"{name}_paper": fixed(papers[column], 3) for name, column in first.items()},
        **{f"{name}_size": str(size) for name, size in HEADLINE.items()},
        "alone": fixed(alone["tau"], 3),
        "alone_min": fixed(alone["fit_cpu_s"] / 60, 0),
        "share": fixed(100 * found[*first["nasbench101"], "best"]["network_share"], 0),
        "statistics_s": spread(fits["statistics"]),
        "best_min": spread([value / 60 for value in fits["best"]], 1),
        "deviation": spread(deviations, 3),
        "deviation_all": fixed(max(drawn.values()), 3),
        "upper_bound": _upper_bound(found),
        "middle": str(middle),
        "marks": _marks(found),
        "parts": table(
            ["one network, one draw", "Kendall's tau"],
            [[label, fixed(found["nasbench101", middle, method]["tau"], 3)] for method, label in PARTS.items()],
        ),
        "table": _order(found, columns, papers),
        "networks": _alone(found, columns, papers),
        "search": accuracy_tables.search(found, METHODS),
        "one_percent": accuracy_tables.one_percent(found, results, METHODS),
        "mixtures": accuracy_tables.mixtures(found),
        "further": accuracy_tables.further(found),
    }


def _draw_quality(results: Results, figure: Figure) -> None:
    panels = figure.subplots(1, 2)
    for axes, (name, title) in zip(panels, BENCHMARKS.items(), strict=True):
        rows = results.rows("predictor_quality", benchmark=name)
        papers = dict(sorted({row["size"]: row["paper"] for row in rows if row["paper"]}.items()))
        axes.plot(list(papers), list(papers.values()), "*-", color=INK, markersize=9, label="NN-Former, published")
        for method, (colour, line, label) in DRAWN.items():
            curve = sorted((row["size"], row["tau"]) for row in rows if row["method"] == method)
            axes.plot(*zip(*curve, strict=True) if curve else ([], []), line, color=colour, markersize=5, label=label)
        axes.set_xscale("log")
        thousands(axes, sorted({row["size"] for row in rows}))
        axes.set_title(title, loc="left")
        axes.set_xlabel("cells to learn from")
    panels[0].set_ylabel("Kendall's tau on all cells")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=3)


QUALITY = Section(
    "Accuracy predictors",
    ("predictor_quality",),
    _quality,
    Picture(
        "accuracy-predictors",
        "Kendall's tau of predictors by the number of cells they learn from",
        _draw_quality,
        (6.8, 4.3),
    ),
)
