"""Predictors that learn from short trainings beside long ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.page.pictures import COLOURS, INK
from benchmarks.page.results import Results
from benchmarks.page.section import Picture, Section
from benchmarks.page.words import count, fixed, spread, table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["SECTIONS"]

Row = Mapping[str, Any]
BENCHMARKS = {"nasbench101": "NAS-Bench-101", "nasbench201": "NAS-Bench-201"}
SHORT = {"nasbench101": "NB101", "nasbench201": "NB201"}
LONGEST = {"nasbench101": 108, "nasbench201": 200}
DRAWN = {4: (COLOURS[1], "v"), 12: (COLOURS[0], "o"), 36: (COLOURS[2], "s")}


def _alone(rows: Sequence[Row], benchmark: str) -> list[Row]:
    """Long trainings alone, the fewest first."""
    return sorted((row for row in rows if row["benchmark"] == benchmark and not row["epochs"]), key=_cost)


def _mixed(rows: Sequence[Row], benchmark: str) -> list[Row]:
    """Those with short trainings, the cheapest first."""
    return sorted((row for row in rows if row["benchmark"] == benchmark and row["epochs"]), key=_cost)


def _cost(row: Row) -> float:
    return float(row["cost"])


def _saved(row: Row, alone: Sequence[Row]) -> str:
    """Share of the cost that long trainings alone need for the same tau, in percent, between those that were tried."""
    taus = np.maximum.accumulate([each["tau"] for each in alone])
    if not taus[0] <= row["tau"] <= taus[-1]:
        return ""
    needed = float(np.interp(row["tau"], taus, [each["cost"] for each in alone]))
    return f"{fixed(100 * (1 - row['cost'] / needed), 0)} %"


def _signed(values: Sequence[float]) -> str:
    low, high = (f"{edge:+.3f}" for edge in (min(values), max(values)))
    return low if low == high else f"{low} to {high}"


def _fidelity(results: Results) -> Mapping[str, str]:
    rows = results.rows("fidelity")
    lines = []
    for name in BENCHMARKS:
        alone = _alone(rows, name)
        by_long = {row["long"]: row for row in alone}
        for row in _mixed(rows, name):
            beside = by_long.get(row["long"])
            lines.append([
                f"{SHORT[name]}: {row['long']} long, {count(row['short'])} of {row['epochs']} epochs",
                fixed(row["tau"], 3),
                fixed(by_long[row["budget"]]["tau"], 3),
                f"{row['gain']:+.3f}",
                f"{row['better_draws']} of {row['draws']}",
                f"{row['tau'] - beside['tau']:+.3f}" if beside else "",
                _saved(row, alone),
            ])  # fmt: skip
    mixed = [row for row in rows if row["epochs"]]
    taus = {(row["benchmark"], row["long"]): row["tau"] for row in rows if not row["epochs"]}
    gains = {name: [row["tau"] - taus[name, row["budget"]] for row in _mixed(rows, name)] for name in BENCHMARKS}
    over = [row["tau"] - taus[key] for row in mixed if (key := (row["benchmark"], row["long"])) in taus]
    return {
        "table": table(
            ["trained", "tau", "long alone, same cost", "difference", "draws better", "over its long ones alone",
             "cost saved"], lines,
        ),
        "draws": spread([row["draws"] for row in rows]),
        "judged": count(results["fidelity"]["judged"]),
        **{name: _signed(found) for name, found in gains.items()},
        "over": _signed(over),
        "within_one": spread([100 * row["within_one"] for row in mixed]),
        "within_two": spread([100 * row["within_two"] for row in mixed]),
        "longest": str(LONGEST["nasbench101"]),
    }  # fmt: skip


def _draw(results: Results, figure: Figure) -> None:
    rows = results.rows("fidelity")
    panels = figure.subplots(1, 2, sharey=False)
    for axes, (name, title) in zip(panels, BENCHMARKS.items(), strict=True):
        alone = _alone(rows, name)
        axes.plot([_cost(row) for row in alone], [row["tau"] for row in alone], "*-", color=INK, label="long alone")
        for epochs, (colour, mark) in DRAWN.items():
            found = [row for row in _mixed(rows, name) if row["epochs"] == epochs]
            axes.plot(
                [_cost(row) for row in found], [row["tau"] for row in found], mark, color=colour,
                markersize=5 + epochs / 6, fillstyle="none", markeredgewidth=1.8, label=f"with {epochs} epochs",
            )  # fmt: skip
            for row in found:
                axes.annotate(f"{row['long']}", (_cost(row), row["tau"]), xytext=(9, -8), textcoords="offset points",
                              fontsize=8, color=colour)  # fmt: skip
        axes.set_title(title, loc="left")
        axes.set_xlabel("hours of training" if name == "nasbench101" else "cost in long trainings")
    panels[0].set_ylabel("Kendall's tau")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=4, columnspacing=1.0, handletextpad=0.4)


SECTIONS = (
    Section(
        "Short trainings beside long ones",
        ("fidelity",),
        _fidelity,
        Picture(
            "short-trainings",
            "Kendall's tau by what trainings cost: long ones alone, and fewer long ones with many short ones",
            _draw,
        ),
    ),
)
