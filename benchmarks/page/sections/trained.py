"""Supernets around trained networks; each of these sections is shown once its result is there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import mean
from typing import TYPE_CHECKING, Any

from benchmarks.page.pictures import COLOURS, GREY, legend_above
from benchmarks.page.results import Results
from benchmarks.page.section import Picture, Section
from benchmarks.page.words import count, fixed, spread, table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["SECTIONS"]

TRANSLATION, IMAGE, ATTENTION = "elastic_translation", "elastic_image", "attention_placement"
MASKED_LM = "elastic_masked_lm"
FULL, NO_TEACHER, NOT_SORTED = "sorted, with teacher", "sorted, without teacher", "not sorted, with teacher"
HALF = "50% of its latency"
SHALLOW = "one decoder layer"
SUBNETS = {"largest": "largest", HALF: "half of its latency", "smallest": "smallest"}
"""The networks that every supernet is asked for."""


def _values(rows: Sequence[Mapping[str, Any]], score: str, **same: Any) -> list[float]:
    """A score of the rows with these fields, one for each seed."""
    return [float(row[score]) for row in rows if all(row.get(key) == value for key, value in same.items())]


def _cell(values: Sequence[float]) -> str:
    """Their mean, and how far apart they are."""
    if not values:
        return ""
    return fixed(mean(values)) + (f" ({spread(values, 1)})" if len(values) > 1 else "")


def _ablations(content: Mapping[str, Any], score: str) -> dict[str, str]:
    """The tables by variant and by updates, what sorting and teacher are worth, and how far seeds are apart."""
    rows, main = content["rows"], content["updates"]
    variants = list(dict.fromkeys(row["supernet"] for row in rows))
    updates = sorted({row["updates"] for row in rows})

    def at_main(variant: str, subnet: str = HALF) -> list[float]:
        return _values(rows, score, supernet=variant, updates=main, subnet=subnet)

    full = at_main(FULL)

    def by_step(variant: str, subnet: str) -> list[str]:
        return [_cell(_values(rows, score, supernet=variant, updates=each, subnet=subnet, seed=1)) for each in updates]

    several = dict.fromkeys(row["supernet"] for row in rows if row["updates"] != main)
    by_updates = [[variant, *by_step(variant, HALF)] for variant in several]
    by_updates.append([f"{FULL}: its largest network", *by_step(FULL, "largest")])
    return {
        "updates": count(main),
        "largest": fixed(mean(at_main(FULL, "largest"))),
        "half": fixed(mean(full)),
        "apart": f"{count(len(full))} seeds are {fixed(max(full) - min(full))} apart" if len(full) > 1 else "one seed",
        "teacher": fixed(mean(full) - mean(at_main(NO_TEACHER))),
        "sorting": fixed(mean(full) - mean(at_main(NOT_SORTED))),
        "variants": table(
            ["supernet", *SUBNETS.values()],
            [[variant, *(_cell(at_main(variant, subnet)) for subnet in SUBNETS)] for variant in variants],
        ),
        "by_updates": table(["supernet", *(f"{count(step)} updates" for step in updates)], by_updates),
    }  # fmt: skip


def _front(results: Results) -> list[Mapping[str, Any]]:
    """The networks under limits on latency, the fastest first."""
    content = results[TRANSLATION]
    rows = results.rows(TRANSLATION, supernet=FULL, updates=content["updates"], seed=1)
    return sorted((row for row in rows if row.get("measured_ms")), key=lambda row: float(row["measured_ms"]))


def _translation(results: Results) -> Mapping[str, str]:
    content = results[TRANSLATION]
    alone, shallow = ([row for row in content["alone"] if (row["subnet"] == SHALLOW) == cut] for cut in (False, True))
    front = [
        [fixed(row["limit_ms"], 2), fixed(row["measured_ms"], 2), fixed(row["params_m"], 2), fixed(row["bleu"])]
        for row in _front(results)
    ]
    return {
        **_ablations(content, "bleu"),
        "trained": fixed(content["trained"]["bleu"]),
        "alone": _cell([row["bleu"] for row in alone]),
        "early": count(alone[0]["updates"]),
        "more": count(alone[0]["alone"]),
        "shallow": _cell([row["bleu"] for row in shallow]),
        "shallow_more": count(shallow[0]["alone"]),
        "shallow_share": fixed(100 * content["relative_latency"][SHALLOW], 0),
        "shallow_predicted": fixed(100 * content["predicted_ms"][SHALLOW] / content["predicted_ms"]["largest"], 0),
        "shallow_ms": fixed(content["predicted_ms"][SHALLOW], 2),
        "trained_ms": fixed(content["predicted_ms"]["largest"], 2),
        "trained_updates": count(content["trained_updates"]),
        "front": table(["limit (ms)", "measured (ms)", "parameters (M)", "BLEU"], front, left=0),
    }


def _draw_translation(results: Results, figure: Figure) -> None:
    left, right = figure.subplots(1, 2)
    content = results[TRANSLATION]
    rows, trained = content["rows"], content["trained"]["bleu"]
    for place, variant in enumerate(
        dict.fromkeys(row["supernet"] for row in rows if row["updates"] != content["updates"])
    ):
        found = sorted(
            (row["updates"], row["bleu"])
            for row in rows
            if (row["supernet"], row["subnet"], row["seed"]) == (variant, HALF, 1)
        )
        left.plot(*zip(*found, strict=True), "o-", color=COLOURS[place], label=variant, markersize=4)
    left.set_xlabel("updates of the supernet")
    left.set_ylabel("BLEU at half of its latency")
    legend_above(left, 1)
    front = _front(results)
    xs, ys = ([row[name] for row in front] for name in ("measured_ms", "bleu"))
    right.step(xs, ys, where="post", color=COLOURS[0], linewidth=2)
    right.plot(xs, ys, "o", color=COLOURS[0], markersize=7)
    alone = [row["bleu"] for row in content["alone"] if row["subnet"] == SHALLOW]
    at = [content["predicted_ms"][SHALLOW]] * len(alone)
    right.plot(at, alone, "s", color=COLOURS[1], markersize=6, label="one decoder layer, trained alone")
    legend_above(right, 1)
    right.set_xlabel("latency (ms)")
    right.set_ylabel("BLEU")
    for axes in (left, right):
        axes.axhline(trained, color=GREY, linewidth=1.2)
    right.margins(x=0.15)
    right.annotate("the trained network", (xs[0], trained), (0, 3), textcoords="offset points", color="#5b646d")


def _image(results: Results) -> Mapping[str, str]:
    content = results[IMAGE]
    return {
        **_ablations(content, "top1"),
        "trained": fixed(content["trained"]["top1"]),
        "epochs": count(content["epochs"]),
    }


def _masked_lm(results: Results) -> Mapping[str, str]:
    content = results[MASKED_LM]
    rows, main = content["rows"], content["updates"]
    subnets = {row["subnet"]: row["params_m"] for row in rows}
    trained = results.rows(MASKED_LM, supernet=FULL, updates=0, subnet="largest")

    def losses(variant: str, updates: int) -> list[str]:
        found = (_values(rows, "loss", supernet=variant, updates=updates, subnet=subnet) for subnet in subnets)
        return [fixed(mean(values), 2) + (f" ({spread(values, 2)})" if len(values) > 1 else "") for values in found]

    ways = list(dict.fromkeys((row["supernet"], row["updates"]) for row in rows))
    return {
        "layers": count(content["layers"]),
        "width": count(content["width"]),
        "trained_updates": count(content["trained_updates"]),
        "updates": count(main),
        "trained": fixed(trained[0]["loss"], 2),
        "losses": table(
            ["supernet", "updates", *(f"{name} ({fixed(size, 2)} M)" for name, size in subnets.items())],
            [[variant, count(updates), *losses(variant, updates)] for variant, updates in ways],
        ),
    }


def _attention(results: Results) -> Mapping[str, str]:
    content = results[ATTENTION]
    alone, cost = content["single_layers"], content["decoding"]
    stages = list(dict.fromkeys(row["after"] for row in alone))
    found = {(row["after"], row["layer"]): row["ppl"] for row in alone}
    layers = range(1, content["layers"] + 1)
    softmax, linear = cost[0], cost[-1]
    placements = content["placements"]
    better = sum(row["ppl"] <= min(row["given"].values()) for row in placements if row["given"])
    return {
        "layers": count(content["layers"]),
        "width": count(content["width"]),
        "length": count(content["length"]),
        "context": count(content["context"]),
        "fit": count(content["fit"]),
        "tuning": count(content["tuning"]),
        "better": count(better),
        "compared": count(sum(bool(row["given"]) for row in placements)),
        "softmax_cache": fixed(softmax["cache_mb"], 2),
        "linear_cache": fixed(linear["cache_mb"], 2),
        "softmax_slower": fixed(softmax["far_ms"] / softmax["near_ms"], 2),
        "linear_slower": fixed(linear["far_ms"] / linear["near_ms"], 2),
        "near": count(softmax["near"]),
        "far": count(softmax["far"]),
        "single": table(
            ["linear attention in layer", *stages],
            [
                *([str(layer), *(fixed(found[stage, layer], 2) for stage in stages)] for layer in layers),
                ["all", *(fixed(content["all_linear_ppl"][stage], 2) for stage in stages)],
                ["none", *(fixed(next(r["softmax_ppl"] for r in alone if r["after"] == s), 2) for s in stages)],
            ],
        ),
        "placements": table(
            ["linear layers", "kept (MB)", "found", "perplexity", "placements without a search"],
            [
                [
                    str(row["linear_layers"]), fixed(row["cache_mb"], 2),
                    ", ".join(str(at) for at, kind in enumerate(row["attention"], 1) if kind != "softmax"),
                    fixed(row["ppl"], 2),
                    "; ".join(f"{name.partition(' ')[2]} {fixed(ppl, 2)}" for name, ppl in row["given"].items()),
                ]
                for row in placements
            ],
        ),
    }  # fmt: skip


FROM_TRANSLATION = Section(
    "From a trained translation model",
    (TRANSLATION,),
    _translation,
    Picture(
        "from-a-trained-translation-model",
        "BLEU of the network of half the latency against updates, for each way to make the supernet; and BLEU against"
        " measured latency of the networks found under three limits, beside that of the network with one decoder layer"
        " (its latency predicted), trained alone",
        _draw_translation,
        (7.6, 4.6),
    ),
    optional=True,
)
FROM_IMAGE = Section("From a trained image model", (IMAGE,), _image, optional=True)
FROM_ATTENTION = Section("Attention of a trained model", (ATTENTION,), _attention, optional=True)
FROM_MASKED_LM = Section("From a trained masked language model", (MASKED_LM,), _masked_lm, optional=True)
SECTIONS = (FROM_TRANSLATION, FROM_IMAGE, FROM_MASKED_LM, FROM_ATTENTION)
