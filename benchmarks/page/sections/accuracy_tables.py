"""Tables of accuracy predictors: the order of networks, what a search gets, mixtures and their parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.page.results import Results
from benchmarks.page.words import count, fixed, table

__all__ = ["HEADLINE", "SAMPLE", "SHORT", "STAR", "Rows", "further", "mixtures", "one_percent", "search", "shown"]

HEADLINE = {"nasbench101": 100, "nasbench201": 156}
"""Cells to learn from, of which the page speaks first."""
SEARCHED = (("nasbench101", 100), ("nasbench101", 424), ("nasbench201", 156), ("nasbench201", 781))
SHORT = {
    "nasbench101": "NB101",
    "nasbench201": "NB201",
    "nasbench301": "NB301",
    "transnas_object": "TransNAS macro, objects",
    "transnas_jigsaw": "TransNAS macro, jigsaw",
    "fbnet_gold_6226": "FBNet on a Xeon",
    "fbnet_pixel3": "FBNet on a Pixel 3",
}
FURTHER = tuple(SHORT)[2:]
ONE_PERCENT = {("nasbench101_one_percent", 72): "NB101: 72", ("nasbench201_one_percent", 78): "NB201: 78"}
PUBLISHED = {
    "flowerformer": "FlowerFormer, as published",
    "resgatedgcn_fgp": "ResGatedGCN, pre-trained (FGP), as published",
    "flowerformer_fgp": "FlowerFormer, pre-trained (FGP), as published",
}
MIXTURES = {"best": "`best`", "statistics": "`statistics`"}
STAR = "\\*"
"""Behind figures of other settings than today's"""
SAMPLE = "†"
"""Behind figures of a sample of the cells"""
CONTESTANTS = {
    **MIXTURES,
    "best, networks alone": "networks of `best`",
    "graf processes and trees": "GRAF, GP and trees",
    "graf forest": "GRAF, forest",
    "lightgbm statistics": "LightGBM, statistics",
    "lightgbm": "LightGBM, one-hot",
    "ridge": "ridge",
    "gcn": "GCN",
}
PARTS = ("networks", "described processes", "processes", "trees", "additive")
Rows = Mapping[tuple[str, int, str], Mapping[str, Any]]
"""Rows of the result by benchmark, number of cells and method."""


def outdated(row: Mapping[str, Any]) -> bool:
    """Whether a row of a recipe that mixes or is part of a mixture is of other settings than today's."""
    from benchmarks.parts.accuracy.methods import ALONE, settings_of

    recipes = {"best", "statistics", *ALONE}
    return row["method"] in recipes and row.get("settings") != settings_of(row["method"], row["size"])


def marks(row: Mapping[str, Any]) -> str:
    """Signs for a row that is outdated, and for one that not all cells judged."""
    return (STAR if outdated(row) else "") + ("" if row["judged"] == "all" else SAMPLE)


def shown(found: Rows, columns: Sequence[tuple[str, int]], methods: Mapping[str, str]) -> list[list[str]]:
    """A line for each of the methods that has a row in one of the columns: tau, draws in brackets, and the
    :func:`marks` of the row."""

    def cell(column: tuple[str, int], method: str) -> str:
        row = found.get((*column, method))
        return f"{fixed(row['tau'], 3)}{marks(row)} ({row['draws']})" if row else ""

    lines = [[label, *(cell(column, method) for column in columns)] for method, label in methods.items()]
    return [line for line in lines if any(line[1:])]


def search(found: Rows, methods: Mapping[str, str]) -> str:
    """What a search gets: the place of the best of fifty, and tau among the best tenth."""

    def cells(column: tuple[str, int], method: str) -> list[str]:
        row = found.get((*column, method), {})
        if "best_of_50" not in row:
            return ["", ""]
        of = "" if row["judged"] == "all" else f" of {count(row['cells'])}"
        return [f"{count(row['best_of_50'])}{of}", fixed(row["tau_top_tenth"], 3)]

    head = [f"{SHORT[name]}, {count(size)}: {what}" for name, size in SEARCHED for what in ("place", "tau")]
    lines = [[label, *(x for column in SEARCHED for x in cells(column, method))] for method, label in methods.items()]
    return table(["", *head], [line for line in lines if any(line[1:])])


def one_percent(found: Rows, results: Results, methods: Mapping[str, str]) -> str:
    """FlowerFormer's division of the cells."""

    def cells(column: tuple[str, int], method: str) -> list[str]:
        row = found.get((*column, method))
        return [f"{fixed(row['tau'], 3)} ({row['draws']})", fixed(row["tau_as_told"], 3)] if row else ["", ""]

    rows = [
        [label, *(x for name, _ in ONE_PERCENT for x in (fixed(results.published(f"{key}_{name}"), 3), ""))]
        for key, label in PUBLISHED.items()
    ]
    lines = [
        [label, *(x for column in ONE_PERCENT for x in cells(column, method))] for method, label in methods.items()
    ]
    head = [f"{label}{what}" for label in ONE_PERCENT.values() for what in ("", ", by validation")]
    return table(["Kendall's tau (draws)", *head], [*rows, *(line for line in lines if any(line[1:]))])


def mixtures(found: Rows) -> str:
    """Mixtures beside their parts, which were read from the same fits, and how their spread holds."""
    rows = []
    for name in SHORT:
        for (benchmark, size, method), row in sorted(found.items()):
            if benchmark != name or method not in MIXTURES or "parts" not in row:
                continue
            parts = row["parts"]
            more = parts["whole"] - max(parts[part] for part in PARTS if part in parts)
            taus = [fixed(parts.get(part), 3) for part in ("whole", *PARTS)]
            within = [fixed(100 * row[f"within_{times}"], 0) for times in (1, 2)]
            label = f"{SHORT[name]}: {count(size)}, {MIXTURES[method]}{marks(row)} ({row['draws']})"
            rows.append([label, *taus, f"{'+' if more > 0 else ''}{fixed(more, 3)}", *within])
    head = ["learned from (draws)", "whole", *PARTS, "whole - best part", "within one spread, %", "within two, %"]
    return table(head, rows)


def further(found: Rows) -> str:
    """Benchmarks beside those of the paper, one a line: the order of networks by every method."""
    columns = [column for name in FURTHER for column in sorted({key[:2] for key in found if key[0] == name})]
    lines = shown(found, columns, CONTESTANTS)
    cells = zip(*(line[1:] for line in lines), strict=True)
    rows = [[f"{SHORT[name]}: {count(size)}", *row] for (name, size), row in zip(columns, cells, strict=True)]
    return table(["Kendall's tau (draws)", *(line[0] for line in lines)], rows)
