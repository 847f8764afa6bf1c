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
    centred,
    change,
    changes,
    compared,
    methods,
    pairs,
    signed,
    told,
)
from benchmarks.page.words import count, fixed, joined, spread, table
from nas_core.predictor import kendall_tau
from nas_core.space.hat import READ_LAYERS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["SECTIONS"]

NAME = "supernet_trust"


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


def _ahead(losses: Mapping[str, float], above_standalone: bool) -> str:
    """What experts do to the inherited loss, and what follows for an error that is a distance."""
    lower = [name for name, share in losses.items() if share < 0]
    if not lower:
        return "Experts lower no inherited loss here."
    if not above_standalone:
        return f"The inherited loss is lower with {joined(lower)} experts than without any."
    return (
        f"The {joined(lower)} subnets are better than those of the sandwich rule alone, and these are on average better"
        " than standalone: three passes an update teach shared weights more than one pass teaches a network by itself."
        " An error that is a distance then grows with what is good."
    )


def _trust(results: Results) -> Mapping[str, str]:
    content, alone = results[NAME], _alone(results)
    found = methods(content["rows"], alone)
    errors = changes(found, "error")
    apart = mean(row["bias"] for row in found.get(REFERENCE, content["rows"]))
    return {
        "table": compared(found), "constant": fixed(centred(alone), 3),
        "updates": count(content["updates"]), "tokens": count(content["tokens"]), "networks": count(len(alone)),
        "seeds": count(max(len(rows) for rows in found.values())), "alone": spread(alone, 3),
        "alone_mean": fixed(mean(alone), 3), "published": _spread(_published(results, "error_saved")),
        "changes": told(errors), "centred": told(changes(found, "centred")),
        "side": _side(content["rows"]), **_standalone_order(results),
        "ahead": _ahead(changes(found, "inherited_loss"), apart < 0),
    }  # fmt: skip


def _standalone_order(results: Results) -> dict[str, str]:
    """Return what decides the order of standalone losses: size, or one gene."""
    rows = results[NAME]["standalone"]
    qualities = [-row["loss"] for row in rows]
    reads = [max(READ_LAYERS[option] for option in row["genes"]["decoder.arbitrary_cross"]) for row in rows]
    return {
        "tau_size": fixed(kendall_tau([row["params_m"] for row in rows], qualities), 2),
        "tau_reads": fixed(kendall_tau(reads, qualities), 2),
    }


def _alone(results: Results) -> list[float]:
    """Standalone losses of the networks."""
    return [each["loss"] for each in results[NAME]["standalone"]]


def _one_standalone_training(results: Results) -> list[Mapping[str, Any]]:
    """The rows of supernets that had as many passes as a standalone training; of SPOS these are as many updates."""
    one_pass = [row for row in results[NAME]["rows"] if row["method"] == SPOS]
    return [*one_pass, *results[NAME]["equal_passes"]["rows"]]


def _passes(results: Results) -> Mapping[str, str]:
    """Supernets of as many passes as a standalone training."""
    rows = _one_standalone_training(results)
    found = methods(rows, _alone(results))
    errors, losses = changes(found, "error"), changes(found, "inherited_loss")
    return {
        "updates": count(results[NAME]["equal_passes"]["updates"]), "table": compared(found),
        "side": _side(rows), "changes": told(errors), "centred": told(changes(found, "centred")),
        "losses": told(losses, 1),
        "beyond": _beyond(found),
    }  # fmt: skip


def _beyond(found: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    """Which methods that the paper does not have are better than its own with every seed that both have."""
    plain = PAPERS[1]
    judged = {
        name: both for name, rows in found.items()
        if name not in (SPOS, REFERENCE, *PAPERS) and (both := pairs(rows, found.get(plain, ()), "inherited_loss"))
    }  # fmt: skip
    if not judged:
        return ""
    better = [name for name, both in judged.items() if all(own < other for own, other in both)]
    which = f"{joined(better)} {'has' if len(better) == 1 else 'have'}" if better else "none has"
    seeds = spread([len(both) for both in judged.values()])
    return f"Of what goes beyond it, {which} a lower inherited loss than {plain} experts with every seed of {seeds}."


def _further(results: Results) -> Mapping[str, str]:
    """How many updates subnets need until they are as good as standalone."""
    content = results[NAME]["further"]
    found = methods(content["rows"])
    saved = changes(found, "updates", SPOS)
    rows = [
        [name, fixed(mean(row["updates"] for row in own), 0), _share(change(own, found.get(SPOS, ()), "updates"), name),
         f"{fixed(100 * mean(row['reached'] for row in own), 0)} %"]
        for name, own in found.items()
    ]  # fmt: skip
    return {
        "table": table(["", "further updates", "to SPOS", "reached"], rows),
        "networks": count(len(content["rows"][0]["networks"])), "every": count(content["every"]),
        "most": count(content["most_updates"]), "changes": told(saved),
        "published": _spread(_published(results, "updates_saved")),
        "seeds": count(max(len(each) for each in found.values())),
    }  # fmt: skip


def _scatter(results: Results, figure: Figure, rows: Sequence[Mapping[str, Any]]) -> None:
    axes = figure.subplots()
    alone = _alone(results)
    order = (SPOS, REFERENCE, *PAPERS)
    for name, own in methods(row for row in rows if row["method"] in order).items():
        inherited = [mean(values) for values in zip(*(row["inherited"] for row in own), strict=True)]
        axes.plot(alone, inherited, "o", color=COLOURS[order.index(name)], label=name, markersize=5)
    ends = [min(alone), max(alone)]
    axes.plot(ends, ends, color=GREY, linewidth=1)
    axes.set_xlabel("standalone loss")
    axes.set_ylabel("inherited loss, mean of seeds")
    legend_above(axes, 4)


def _share(share: float | None, method: str) -> str:
    return "" if share is None or method == SPOS else signed(share)


def _draw(results: Results, figure: Figure) -> None:
    _scatter(results, figure, results[NAME]["rows"])


def _draw_passes(results: Results, figure: Figure) -> None:
    _scatter(results, figure, _one_standalone_training(results))


ALT = "Inherited loss of networks over their standalone loss, for each way of training a supernet"
SECTIONS = [
    Section(
        "Estimates of supernets", (NAME,), _trust, Picture("supernet-trust", f"{ALT}.", _draw), optional=True
    ),
    Section(
        "Estimates at equal passes", (NAME,), _passes,
        Picture("supernet-passes", f"{ALT}, with as many passes as a standalone training has.", _draw_passes),
        optional=True, part="equal_passes",
    ),
    Section("Further training", (NAME,), _further, optional=True, part="further"),
]  # fmt: skip
