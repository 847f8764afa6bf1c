"""Linear attention beside softmax: time and memory, and what it does to quality."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from benchmarks.page.pictures import COLOURS, GREY, crossing, legend_above, thousands
from benchmarks.page.results import Results, middle_of
from benchmarks.page.section import Picture, Section
from benchmarks.page.words import count, fixed, joined, spread, table, times

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["SECTIONS", "crossings", "speed_ups"]

FORMS = {
    "causal forward": "causal, forward",
    "causal forward and backward": "causal, forward and backward",
    "all keys forward": "all keys, forward",
    "all keys forward and backward": "all keys, forward and backward",
}
"""What was timed, as the result and as the page call it."""


def speed_ups(results: Results, form: str) -> dict[int, float]:
    """How many times as long softmax attention takes, by the number of positions."""
    found = {}
    for name, each in results["linear_attention"]["speed"].items():
        timed, _, positions = name.rpartition(" ")
        if timed == form:
            found[int(positions)] = middle_of(each["ours_times"]["sdpa"])
    return found


def crossings(results: Results) -> list[float]:
    """From how many positions on linear attention is faster, for each form."""
    return [crossing(found, found.values()) for found in (speed_ups(results, form) for form in FORMS)]


def _linear(results: Results) -> Mapping[str, str]:
    content = results["linear_attention"]
    curves = {form: speed_ups(results, form) for form in FORMS}
    positions = list(curves["causal forward"])
    longest = positions[-1]
    sums = {
        name.rpartition(" ")[2]: middle_of(each["ours_times"]["cumulative"])
        for name, each in content["speed"].items()
        if "cumulative" in each["ours_times"]
    }
    memory = [use["ours"] / use["sdpa"] for use in content["memory_mb"].values()]
    decoding = next(aim for aim in content["aims"] if aim["aim"].startswith("decoding"))
    far, near = sorted((int(name.split()[1]) for name in content["decoding"]["ms"] if "ours" in name), reverse=True)
    scale = results["attention_scale"]
    rows = scale["rows"]
    scales = list(rows[0]["causal"])
    return {
        "crossing": spread([round(place, -1) for place in crossings(results)]),
        "longest": count(longest),
        "causal": times(curves["causal forward"][longest]),
        "all_keys": times(curves["all keys forward"][longest]),
        "sums_at": joined(count(int(place)) for place in sums),
        "sums": joined(fixed(value, 0) for value in sums.values()),
        "memory": spread(memory, 1),
        "far": count(far),
        "near": count(near),
        "decoding": fixed(decoding["value"], 2),
        "table": table(
            ["positions", *(count(place) for place in positions)],
            [[label, *(fixed(curves[form].get(place)) for place in positions)] for form, label in FORMS.items()],
        ),
        "scale_tokens": spread([row["length"] for row in rows]),
        "own": spread([100 * row["own"] for row in rows]),
        "scale_table": table(
            ["tokens", "encoder, own length", *(f"decoder, scale {scale}" for scale in scales)],
            [
                [str(row["length"]), fixed(100 * row["own"], 1),
                 *(fixed(100 * row["causal"][one], 2) if one in row["causal"] else "" for one in scales)]
                for row in rows
            ],
        ),
    }  # fmt: skip


def _draw_linear(results: Results, figure: Figure) -> None:
    axes = figure.subplots()
    for form, colour in zip(FORMS, (COLOURS[0], COLOURS[0], COLOURS[1], COLOURS[1]), strict=True):
        found = speed_ups(results, form)
        line = "--" if "backward" in form else "-"
        axes.plot(list(found), list(found.values()), f"o{line}", color=colour, markersize=4, label=FORMS[form])
    axes.axhline(1, color=GREY, linewidth=1.4)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    ticks = [0.5, 1, 2, 5, 10, 20]
    axes.set_yticks(ticks, [f"{tick:g} x" for tick in ticks])
    axes.set_yticks([], minor=True)
    thousands(axes, list(speed_ups(results, "causal forward")))
    axes.set_xlabel("positions")
    axes.set_ylabel("time of softmax / time of linear")
    axes.annotate("above: linear attention is faster", (1, 1), (0, 4), ("axes fraction", "data"), "offset points",
                  ha="right", color="#5b646d", fontsize=9.5)  # fmt: skip
    legend_above(axes, 2)


LINEAR = Section(
    "Linear attention",
    ("linear_attention", "attention_scale"),
    _linear,
    Picture(
        "linear-attention",
        "How many times as fast as softmax attention linear attention is, by the number of positions",
        _draw_linear,
        (6.8, 4.0),
    ),
)


def _quality(results: Results) -> Mapping[str, str]:
    content = results["attention_quality"]
    rows = {row["attention"]: row for row in content["rows"]}

    def scores(values: list[float]) -> str:
        return ", ".join(fixed(value) for value in values)

    softmax = rows["softmax everywhere"]
    losses = [softmax["inherited_bleu"][0] - row["inherited_bleu"][0] for row in rows.values() if row is not softmax]
    return {
        "updates": count(content["updates"]),
        "softmax": spread(softmax["standalone_bleu"], 1),
        "encoder": spread(rows["linear in the encoder"]["standalone_bleu"], 1),
        "decoder": scores(rows["linear in the decoder"]["standalone_bleu"]),
        "across": scores(rows["linear across"]["standalone_bleu"]),
        "lost": spread(losses, 1),
        "paper": fixed(results.published("mformer_bleu_all_encoder_layers_linear"), 2),
        "paper_softmax": fixed(results.published("mformer_bleu_all_softmax"), 2),
        "table": table(
            ["attention", "trained alone, each seed", "inherited, one supernet"],
            [[name, scores(row["standalone_bleu"]), scores(row["inherited_bleu"])] for name, row in rows.items()],
        ),
    }


QUALITY = Section("Attention quality", ("attention_quality",), _quality)
SECTIONS = (LINEAR, QUALITY)
