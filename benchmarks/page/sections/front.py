"""How much faster a found network is, and how much BLEU that costs: the run that ``make demo`` repeats."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from benchmarks.page.pictures import COLOURS, GREY, legend_above
from benchmarks.page.results import Results
from benchmarks.page.section import Picture, Section
from benchmarks.page.words import count, fixed, joined, table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["SECTIONS", "found", "shallow", "trade"]

NAME = "demo_front"

Row = Mapping[str, Any]


def _rows(results: Results) -> list[Row]:
    """Return the networks, the fastest first."""
    return sorted(results.rows(NAME), key=lambda row: float(row["relative_latency"]))


def found(results: Results) -> Row:
    """Return the network that the search found under the middle limit."""
    limited = [row for row in _rows(results) if row["limit_ms"]]
    return sorted(limited, key=lambda row: float(row["limit_ms"]))[len(limited) // 2]


def shallow(results: Results) -> list[Row]:
    """Return the largest network with fewer decoder layers, the fastest first."""
    return [row for row in _rows(results) if row["bleu_inherited"] is None]


def trade(results: Results, row: Row, which: str = "bleu_from_scratch") -> str:
    """Return how much faster a network is than the largest one, and by how much its BLEU differs, as words."""
    largest = results.row(NAME, network="largest")["bleu_from_scratch"]
    difference = float(largest - row[which])
    return f"{fixed(1 / row['relative_latency'])} x as fast at {fixed(abs(difference))} BLEU {_side(difference)}"


def _side(difference: float) -> str:
    return "less" if difference >= 0 else "more"


def _values(results: Results) -> Mapping[str, str]:
    largest = results.row(NAME, network="largest")["bleu_from_scratch"]
    rows = [
        [row["network"], fixed(row["params_m"], 2), fixed(row["relative_latency"], 2),
         fixed(1 / row["relative_latency"]), fixed(row["bleu_inherited"]), fixed(row["bleu_from_scratch"]),
         fixed(largest - row["bleu_from_scratch"])]
        for row in _rows(results)
    ]  # fmt: skip
    facts = results[NAME]["facts"]
    return {
        "updates": count(results[NAME]["updates"]),
        "corpus": facts["corpus"],
        "found": trade(results, found(results)),
        "inherited": fixed(found(results)["bleu_inherited"]),
        "search": facts["search"],
        "shallow": joined(f"with {row['network']} {trade(results, row)}" for row in shallow(results)),
        "table": table(
            ["network", "parameters (M)", "latency / largest", "times as fast", "BLEU, inherited", "BLEU, from scratch",
             "less than the largest"],
            rows,
        ),
    }  # fmt: skip


def _draw(results: Results, figure: Figure) -> None:
    axes = figure.subplots()
    whole = float(results.row(NAME, network="largest")["measured_ms"])
    simple, ours = shallow(results), [row for row in _rows(results) if row["bleu_inherited"] is not None]
    for rows, style, colour, label in (
        (ours, "o-", COLOURS[0], "found in a supernet, with its smallest and largest network"),
        (simple, "s--", COLOURS[1], "the largest with fewer decoder layers"),
    ):
        xs = [whole * row["relative_latency"] for row in rows]
        axes.plot(xs, [row["bleu_from_scratch"] for row in rows], style, color=colour, linewidth=1.5, label=label)
    largest = results.row(NAME, network="largest")
    axes.axhline(largest["bleu_from_scratch"], color=GREY, linewidth=1)
    for row, offset, side, colour in (
        (found(results), (-6, 6), "right", COLOURS[0]), *((row, (8, -24), "left", COLOURS[1]) for row in simple)
    ):  # fmt: skip
        times, _, cost = trade(results, row).partition(" at ")
        place = (whole * row["relative_latency"], row["bleu_from_scratch"])
        axes.annotate(f"{times}\n{cost}", place, offset, textcoords="offset points", ha=side, color=colour,
                      va="bottom" if side == "right" else "top", fontsize=9.5)  # fmt: skip
    axes.set_xlabel("measured latency (ms)")
    axes.set_ylabel("BLEU, each trained from scratch")
    axes.margins(x=0.12, y=0.12)
    legend_above(axes, 1)


FRONT = Picture(
    "front",
    "BLEU over measured latency: networks that a search found in one supernet, and the largest network with fewer"
    " decoder layers, all trained from scratch",
    _draw,
    (6.8, 4.4),
)
SECTIONS = (Section("Faster at how much BLEU", (NAME,), _values, FRONT),)
