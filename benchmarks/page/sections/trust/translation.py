"""Estimates of supernets for translation: equal updates, equal passes, and how far subnets are from standalone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import mean
from typing import TYPE_CHECKING, Any

from benchmarks.page.pictures import COLOURS, GREY, legend_above
from benchmarks.page.results import Results
from benchmarks.page.section import Picture, Section
from benchmarks.page.sections.trust.methods import (
    PAPERS,
    REFERENCE,
    SPOS,
    change,
    changes,
    compared,
    methods,
    signed,
    told,
)
from benchmarks.page.words import count, fixed, joined, spread, table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["SECTIONS"]

NAME = "supernet_trust"


def _verdict(results: Results, shares: Mapping[str, float], saved: str) -> str:
    """Whether a change is at least the paper's smallest."""
    held = [name for name in shares if -shares[name] >= min(_published(results, saved)[name])]
    return f"holds for {joined(held)}" if held else "does not hold here"


def _published(results: Results, saved: str) -> dict[str, Sequence[float]]:
    return {name: results.published(f"mos_{name.partition('-')[0]}_{saved}") for name in PAPERS}


def _spread(published: Mapping[str, Sequence[float]]) -> str:
    return joined(f"{spread([100 * share for share in shares])} % {name}" for name, shares in published.items())


def _side(rows: Sequence[Mapping[str, Any]]) -> str:
    if all(row["bias"] > 0 for row in rows):
        return "All inherited losses are higher than standalone ones on average."
    if all(row["bias"] < 0 for row in rows):
        return "All inherited losses are lower than standalone ones on average."
    return "Inherited losses are on average higher than standalone ones for some supernets, lower for others."


def _trust(results: Results) -> Mapping[str, str]:
    content = results[NAME]
    found, alone = methods(content["rows"]), [each["loss"] for each in content["standalone"]]
    errors = changes(found, "error")
    losses = {name: mean(row["inherited_loss"] for row in found[name]) for name in (REFERENCE, *errors)}
    ahead = [name for name in errors if losses[name] < losses[REFERENCE] < mean(alone)]
    return {
        "table": compared(found),
        "updates": count(content["updates"]), "tokens": count(content["tokens"]), "networks": count(len(alone)),
        "seeds": count(max(len(rows) for rows in found.values())), "alone": spread(alone, 3),
        "alone_mean": fixed(mean(alone), 3), "published": _spread(_published(results, "error_saved")),
        "changes": told(errors), "verdict": _verdict(results, errors, "error_saved"), "side": _side(content["rows"]),
        "ahead": f"The {joined(ahead)} subnets are better than those of the sandwich rule alone, and both are on"
        " average better than standalone: three passes an update teach shared weights more than one pass teaches a"
        " network by itself. An error that is a distance then grows with what is good."
        if ahead
        else "Experts lower no inherited loss here.",
        **_passes(results), **_further(results),
    }  # fmt: skip


def _passes(results: Results) -> dict[str, str]:
    """Supernets of as many passes as a standalone training."""
    content = results[NAME]["equal_passes"]
    one_pass = [row for row in results[NAME]["rows"] if row["method"] == SPOS]
    found = methods([*one_pass, *content["rows"]])
    errors, losses = changes(found, "error"), changes(found, "inherited_loss")
    beyond = {name: rows for name, rows in found.items() if name not in (SPOS, REFERENCE, *PAPERS)}
    plain = found[PAPERS[1]]
    better = [
        name for name, rows in beyond.items()
        if len(rows) > 1 and all(
            row["inherited_loss"] < other["inherited_loss"]
            for row in rows for other in plain if other["seed"] == row["seed"]
        )
    ]  # fmt: skip
    return {
        "passes_updates": count(content["updates"]), "passes_table": compared(found),
        "passes_side": _side([*one_pass, *content["rows"]]), "passes_changes": told(errors),
        "passes_losses": joined(f"{signed(share, 1)} {name}" for name, share in losses.items()),
        "passes_verdict": _verdict(results, errors, "error_saved"),
        "beyond": f"Of them {joined(better)} {'has' if len(better) == 1 else 'have'} a lower inherited loss than"
        f" plain {PAPERS[1]} experts with every seed."
        if better
        else f"None of them has a lower inherited loss than plain {PAPERS[1]} experts with every seed.",
    }  # fmt: skip


def _further(results: Results) -> dict[str, str]:
    """How many updates subnets need until they are as good as standalone."""
    content = results[NAME]["further"]
    found = methods(content["rows"])
    saved = changes(found, "updates", SPOS)
    ahead = {name: change(own, found[SPOS], "updates") for name, own in found.items() if name != SPOS}
    rows = [
        [name, fixed(mean(row["updates"] for row in rows), 0), "" if name == SPOS else signed(ahead[name]),
         f"{fixed(100 * mean(row['reached'] for row in rows), 0)} %"]
        for name, rows in found.items()
    ]  # fmt: skip
    return {
        "further_table": table(["", "further updates", "to SPOS", "reached"], rows),
        "further_networks": count(len(content["rows"][0]["networks"])), "every": count(content["every"]),
        "most": count(content["most_updates"]), "further_changes": told(saved),
        "further_published": _spread(_published(results, "updates_saved")),
        "further_verdict": _verdict(results, saved, "updates_saved"),
        "further_seeds": count(max(len(each) for each in found.values())),
    }  # fmt: skip


def _draw(results: Results, figure: Figure) -> None:
    content = results[NAME]
    alone = [each["loss"] for each in content["standalone"]]
    one_pass = [row for row in content["rows"] if row["method"] == SPOS]
    parts = {"equal updates": content["rows"], "equal passes": [*one_pass, *content["equal_passes"]["rows"]]}
    for axes, (title, rows) in zip(figure.subplots(1, 2, sharex=True), parts.items(), strict=True):
        found = {name: own for name, own in methods(rows).items() if name in (SPOS, REFERENCE, *PAPERS)}
        for name, own in found.items():
            colour = COLOURS[(SPOS, REFERENCE, *PAPERS).index(name)]
            inherited = [mean(values) for values in zip(*(row["inherited"] for row in own), strict=True)]
            axes.plot(alone, inherited, "o", color=colour, label=name, markersize=4)
        axes.plot([min(alone), max(alone)], [min(alone), max(alone)], color=GREY, linewidth=1)
        axes.set_xlabel(f"standalone loss ({title})")
    figure.axes[0].set_ylabel("inherited loss, mean of seeds")
    legend_above(figure.axes[0], 2)


PICTURE = Picture(
    "supernet-trust",
    "Inherited loss of networks over their standalone loss, for each way of training a supernet: on the left with equal"
    " updates, on the right with equal passes.",
    _draw,
    (7.6, 3.8),
)
SECTIONS = [Section("Estimates of supernets", (NAME,), _trust, PICTURE, optional=True)]
