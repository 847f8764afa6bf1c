"""How much faster a found network is, and how much BLEU that costs: the run that ``make demo`` repeats."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from benchmarks.page.pictures import COLOURS, GREY, legend_above
from benchmarks.page.results import Results
from benchmarks.page.section import Picture, Section
from benchmarks.page.words import count, fixed, table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["SECTIONS", "found", "less", "times_as_fast"]

NAME = "demo_front"
SHALLOW = "one decoder layer"

Row = Mapping[str, Any]


def _rows(results: Results) -> list[Row]:
    """Return the networks, the fastest first."""
    return sorted(results.rows(NAME), key=lambda row: float(row["relative_latency"]))


def found(results: Results) -> Row:
    """Return the network that the search found under the middle limit."""
    limited = [row for row in _rows(results) if row["limit_ms"]]
    return sorted(limited, key=lambda row: float(row["limit_ms"]))[len(limited) // 2]


def times_as_fast(row: Row) -> str:
    return fixed(1 / row["relative_latency"])


def less(results: Results, row: Row, which: str = "bleu_from_scratch") -> float:
    """Return by how much a network's BLEU is below that of the largest one trained from scratch."""
    largest = results.row(NAME, network="largest")["bleu_from_scratch"]
    return float(largest - row[which])


def _values(results: Results) -> Mapping[str, str]:
    middle, simple = found(results), results.row(NAME, network=SHALLOW)
    rows = [
        [row["network"], fixed(row["params_m"], 2), fixed(row["relative_latency"], 2), times_as_fast(row),
         fixed(row["bleu_inherited"]), fixed(row["bleu_from_scratch"]), fixed(less(results, row))]
        for row in _rows(results)
    ]  # fmt: skip
    facts = results[NAME]["facts"]
    return {
        "updates": count(results[NAME]["updates"]),
        "corpus": facts["corpus"],
        "wall": facts["wall time"],
        "found": middle["network"],
        "times": times_as_fast(middle),
        "less": fixed(less(results, middle)),
        "less_inherited": fixed(less(results, middle, "bleu_inherited")),
        "shallow_times": times_as_fast(simple),
        "shallow_less": fixed(less(results, simple)),
        "table": table(
            ["network", "parameters (M)", "latency / largest", "times as fast", "BLEU, inherited", "BLEU, from scratch",
             "BLEU less than the largest"],
            rows,
        ),
    }  # fmt: skip


def _draw(results: Results, figure: Figure) -> None:
    axes = figure.subplots()
    whole = float(results.row(NAME, network="largest")["measured_ms"])
    rows = _rows(results)
    ours = [row for row in rows if row["network"] != SHALLOW]
    xs = [whole * row["relative_latency"] for row in ours]
    axes.plot(xs, [row["bleu_inherited"] for row in ours], "o--", color=COLOURS[0], markerfacecolor="white",
              linewidth=1, label="weights inherited from one supernet")  # fmt: skip
    axes.plot(xs, [row["bleu_from_scratch"] for row in ours], "o-", color=COLOURS[0], linewidth=1.6,
              label="each trained from scratch")  # fmt: skip
    simple = results.row(NAME, network=SHALLOW)
    axes.plot([whole * simple["relative_latency"]], [simple["bleu_from_scratch"]], "s", color=COLOURS[1],
              label="largest with one decoder layer, from scratch")  # fmt: skip
    for row, x in zip(ours, xs, strict=True):
        if row["network"] == "largest":
            axes.axhline(row["bleu_from_scratch"], color=GREY, linewidth=1)
            continue
        cost = less(results, row)
        label = f"{times_as_fast(row)} x as fast\n{fixed(abs(cost))} BLEU {'less' if cost >= 0 else 'more'}"
        axes.annotate(label, (x, row["bleu_from_scratch"]), (4, -6), textcoords="offset points", va="top", fontsize=9)
    axes.set_xlabel("measured latency (ms)")
    axes.set_ylabel("BLEU on the test set")
    axes.margins(x=0.1, y=0.18)
    legend_above(axes, 1)


FRONT = Picture(
    "front",
    "BLEU over measured latency: networks that a search found in one supernet, with inherited weights and trained from"
    " scratch, beside the largest network with one decoder layer",
    _draw,
    (6.8, 4.4),
)
SECTIONS = (Section("Faster at how much BLEU", (NAME,), _values, FRONT),)
