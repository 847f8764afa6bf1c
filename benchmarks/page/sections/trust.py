"""Whether a supernet's estimates hold: inherited against standalone loss; shown once its result is there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import mean, stdev
from typing import TYPE_CHECKING, Any

from benchmarks.page.pictures import COLOURS, GREY, legend_above
from benchmarks.page.results import Results
from benchmarks.page.section import Picture, Section
from benchmarks.page.words import count, fixed, joined, spread, table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["REFERENCE", "SECTIONS"]

NAME = "supernet_trust"
REFERENCE = "sandwich"
"""What the others are compared with, as in the paper."""
PAPERS = ("layer-wise", "neuron-wise")


def _methods(results: Results) -> dict[str, list[Mapping[str, Any]]]:
    """The rows of each method, one for each seed."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    for row in results[NAME]["rows"]:
        found.setdefault(row["method"], []).append(row)
    return found


def _of_seeds(values: Sequence[float], digits: int) -> str:
    """The mean, with the deviation where there are several seeds."""
    apart = f" ± {fixed(stdev(values), digits)}" if len(values) > 1 else ""
    return f"{fixed(mean(values), digits)}{apart}"


def _change(rows: Sequence[Mapping[str, Any]], reference: Sequence[Mapping[str, Any]]) -> float:
    """By how much the error is another than the reference's of the same seeds, as share of it."""
    beside = {row["seed"]: row["error"] for row in reference}
    pairs = [(row["error"], beside[row["seed"]]) for row in rows if row["seed"] in beside]
    return sum(own for own, _ in pairs) / sum(other for _, other in pairs) - 1


def _signed(share: float) -> str:
    return f"{'+' if share > 0 else '−' if share < 0 else ''}{fixed(abs(100 * share), 0)} %"


def _line(method: str, rows: Sequence[Mapping[str, Any]], reference: Sequence[Mapping[str, Any]]) -> list[str]:
    def of(value: str, digits: int) -> str:
        return _of_seeds([row[value] for row in rows], digits)

    routing = [row["routing"]["extremes"] for row in rows if row["routing"]]
    return [
        method, of("error", 3), "" if method == REFERENCE else _signed(_change(rows, reference)), of("tau", 2),
        of("inherited_loss", 3), fixed(mean(row["conflict"]["smallest"] for row in rows), 2),
        fixed(mean(routing), 2) if routing else "",
    ]  # fmt: skip


def _trust(results: Results) -> Mapping[str, str]:
    content, methods = results[NAME], _methods(results)
    reference = methods[REFERENCE]
    changes = {name: _change(methods[name], reference) for name in methods if name != REFERENCE}
    papers = {name: changes[name] for name in PAPERS if name in changes}
    published = {name: results.published(f"mos_{name.partition('-')[0]}_error_saved") for name in PAPERS}
    held = [name for name, change in papers.items() if -change >= min(published[name])]
    alone = [each["loss"] for each in content["standalone"]]
    most = max(len(rows) for rows in methods.values())
    head = ["", "error", "to sandwich", "tau", "inherited loss", "conflict", "routing"]
    lower = all(row["bias"] < 0 for rows in methods.values() for row in rows)
    higher = all(row["bias"] > 0 for rows in methods.values() for row in rows)
    losses = {name: mean(row["inherited_loss"] for row in methods[name]) for name in (REFERENCE, *papers)}
    ahead = [name for name in papers if losses[name] < losses[REFERENCE] < mean(alone)]
    return {
        "table": table(head, [_line(name, rows, reference) for name, rows in methods.items()]),
        "updates": count(content["updates"]), "tokens": count(content["tokens"]), "networks": count(len(alone)),
        "seeds": count(most), "alone": spread(alone, 3), "alone_mean": fixed(mean(alone), 3),
        "published": joined(
            f"{spread([100 * share for share in shares])} % {name}" for name, shares in published.items()
        ),
        "changes": joined(f"{_signed(change)} {name}" for name, change in papers.items()),
        "ahead": f"The {joined(ahead)} subnets are better than those of the sandwich rule alone, and both are on"
        " average better than standalone: three passes an update teach shared weights more than one pass teaches a"
        " network by itself. An error that is a distance then grows with what is good."
        if ahead
        else "Experts lower no inherited loss here.",
        "verdict": f"holds for {joined(held)}" if held else "does not hold here",
        "side": "All inherited losses are higher than standalone ones on average." if higher
        else "All inherited losses are lower than standalone ones on average." if lower
        else "Inherited losses are on average higher than standalone ones for some supernets, lower for others.",
    }  # fmt: skip


def _draw(results: Results, figure: Figure) -> None:
    axes = figure.subplots()
    alone = [each["loss"] for each in results[NAME]["standalone"]]
    for colour, (method, rows) in zip(COLOURS, _methods(results).items(), strict=False):
        inherited = [mean(values) for values in zip(*(row["inherited"] for row in rows), strict=True)]
        axes.plot(alone, inherited, "o", color=colour, label=method, markersize=5)
    ends = [min(alone), max(alone)]
    axes.plot(ends, ends, color=GREY, linewidth=1)
    axes.set_xlabel("standalone loss")
    axes.set_ylabel("inherited loss, mean of seeds")
    legend_above(axes, 4)


PICTURE = Picture(
    "supernet-trust",
    "Inherited loss of networks over their standalone loss, for each way of training a supernet.",
    _draw,
)
SECTIONS = [Section("Estimates of supernets", (NAME,), _trust, PICTURE, optional=True)]
