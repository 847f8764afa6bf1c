"""What a supernet's subnets are worth, and what training one costs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from benchmarks.page.pictures import COLOURS, GREY, interval
from benchmarks.page.results import Results
from benchmarks.page.section import Picture, Section
from benchmarks.page.words import count, fixed, joined, table, times

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["SECTIONS"]

EXPERTS = {"none": "no experts", "layer": "layer-wise", "neuron": "neuron-wise"}
FOUND = ("tight", "middle", "loose")
"""The networks that the searches under three limits found, the fastest first."""


def bleu(results: Results, experts: str, subnet: str, which: str = "bleu_inherited") -> float:
    """Return the BLEU of one subnet of one supernet; ``standalone`` names those trained from scratch."""
    return float(results.row("translation_quality", experts=experts, subnet=subnet)[which])


def from_scratch(results: Results) -> str:
    """Return what networks of the largest subnet's sizes reach from scratch, each with its passes."""
    content, plain = results["translation_quality"], results["elastic_translation"]
    runs = [
        (int(row.get("updates", content["updates"])), row["bleu"])
        for row in results.rows("translation_quality", subnet="largest")
        if row["experts"].startswith("standalone")
    ]
    runs.append((plain["trained_updates"], plain["trained"]["bleu"]))
    return joined(f"{fixed(bleu)} after {count(passes)} passes" for passes, bleu in sorted(runs))


def _translation(results: Results) -> Mapping[str, str]:
    name = "translation_quality"

    def cells(label: str, subnet: str) -> list[str]:
        found = {row["experts"]: row for row in results.rows(name, subnet=subnet)}
        kinds = [found.get(kind, {}).get("bleu_inherited") for kind in EXPERTS]
        further, alone = found["neuron"].get("bleu_further"), found.get("standalone", {}).get("bleu")
        return [label, fixed(found["neuron"]["params_m"], 2), *map(fixed, kinds), fixed(further), fixed(alone)]

    rows = [cells("smallest", "smallest")]
    for subnet in FOUND:
        row = results.row(name, subnet=subnet)
        rows.append(cells(f"best under {row['limit_ms']} ms (measured {fixed(row['measured_ms'])} ms)", subnet))
    rows.append(cells("largest", "largest"))
    tight = results.row(name, subnet="tight")
    return {
        "updates": count(results[name]["updates"]),
        "further": count(results[name]["further_updates"]),
        "vocabulary": count(results["supernet_update"]["small"]["vocabulary"]),
        "space": results[name]["space"],
        "largest": fixed(bleu(results, "neuron", "largest")),
        "largest_hat": fixed(bleu(results, "none", "largest")),
        "largest_layer": fixed(bleu(results, "layer", "largest")),
        "alone": from_scratch(results),
        "passes": count(3 * results[name]["updates"]),
        "plain_updates": count(results["elastic_translation"]["trained_updates"]),
        "smallest": fixed(bleu(results, "neuron", "smallest")),
        "smallest_alone": fixed(bleu(results, "standalone", "smallest", "bleu")),
        "smallest_further": fixed(bleu(results, "neuron", "smallest", "bleu_further")),
        "largest_further": fixed(bleu(results, "neuron", "largest", "bleu_further")),
        "tight": fixed(tight["bleu_inherited"]),
        "tight_further": fixed(tight["bleu_further"]),
        "tight_limit": str(tight["limit_ms"]),
        "table": table(
            ["subnet", "parameters (M)", *EXPERTS.values(), "trained further", "from scratch"],
            rows,
        ),
    }  # fmt: skip


TRANSLATION = Section("Translation", ("translation_quality",), _translation)

IMAGES = {"softmax": "softmax in all layers", "linear": "linear in all layers", "mixed": "the search's mixture"}


def _images(results: Results) -> Mapping[str, str]:
    content = results["image_quality"]
    rows = {row["network"]: row for row in content["rows"]}
    layers = [str(place) for place, kind in enumerate(rows["mixed"]["attention"], 1) if kind == "linear"]

    def accuracy(name: str) -> str:
        return f"{fixed(rows[name]['top1'])} ± {fixed(rows[name]['deviation'])} %"

    return {
        "training": count(content["images"]),
        "epochs": str(content["epochs"]),
        "supernet_epochs": str(content["supernet_epochs"]),
        "placements": str(len(content["placements"])),
        "seeds": str(len(rows["softmax"]["each"])),
        "depth": str(len(rows["softmax"]["attention"])),
        "linear_layers": joined(layers),
        **{name: accuracy(name) for name in rows},
        "table": table(
            ["network", "top-1", "each seed", "GFLOPs"],
            [
                [IMAGES[name], accuracy(name), ", ".join(map(fixed, row["each"])), fixed(row["flops_g"], 4)]
                for name, row in rows.items()
            ],
        ),
    }


SECTION_IMAGES = Section("Images", ("image_quality",), _images)

KINDS = {
    "static / plain": "our network of these sizes / fairseq",
    "none / plain": "supernet / fairseq",
    "none, fused loss / plain": "supernet with the fused loss / fairseq",
    "layer / none": "layer-wise experts / supernet",
    "neuron / none": "neuron-wise experts / supernet",
    "layer / plain": "layer-wise experts / fairseq",
    "neuron / plain": "neuron-wise experts / fairseq",
}


def ratios(results: Results, size: str) -> dict[str, Mapping[str, Any]]:
    """The ratios of times of an update at one size, by name, in the order of the table."""
    content = results["supernet_update"][size]
    found = {each["ratio"]: each for each in (*content["aims"], *content["further"])}
    return {name: found[name] for name in KINDS}


TEACHERS = {"teacher": "a checkpoint", "cached": "a checkpoint, read from disk", "largest": "the largest subnet"}


def _teacher(results: Results) -> Mapping[str, str]:
    content = results["teacher_update"]

    def cell(sampling: str, teacher: str) -> str:
        ratio = content[sampling]["times_none"].get(teacher)
        if ratio is None:
            return fixed(None)
        return f"{fixed(ratio['median'], 2)} ({fixed(ratio['q25'], 2)} to {fixed(ratio['q75'], 2)})"

    values = {
        f"{sampling}_{teacher}": times(ratio["median"], 2)
        for sampling in ("sandwich", "spos")
        for teacher, ratio in content[sampling]["times_none"].items()
    }
    return {
        "teacher_tokens": count(content["target_tokens"]),
        "teacher_vocabulary": count(content["vocabulary"]),
        "teacher_table": table(
            ["teacher", "sandwich", "one random subnet"],
            [[label, cell("sandwich", name), cell("spos", name)] for name, label in TEACHERS.items()],
        ),
        **values,
    }


def _update(results: Results) -> Mapping[str, str]:
    content = results["supernet_update"]
    small, wmt = ratios(results, "small"), ratios(results, "wmt")

    def cell(ratio: Mapping[str, Any]) -> str:
        return f"{fixed(ratio['median'], 2)} ({fixed(ratio['q25'], 2)} to {fixed(ratio['q75'], 2)})"

    return {
        "small": times(small["none / plain"]["median"], 2),
        "small_layer": times(small["layer / none"]["median"], 2),
        "small_neuron": times(small["neuron / none"]["median"], 2),
        "small_fused": times(small["none, fused loss / plain"]["median"], 2),
        "small_tokens": count(content["small"]["target_tokens"]),
        "wmt": times(wmt["none / plain"]["median"], 2),
        "wmt_layer": times(wmt["layer / none"]["median"], 2),
        "wmt_neuron": times(wmt["neuron / none"]["median"], 2),
        "wmt_fused": times(wmt["none, fused loss / plain"]["median"], 2),
        "wmt_tokens": count(content["wmt"]["target_tokens"]),
        "wmt_shared": count(content["wmt"]["params_m"]["none"]),
        "wmt_plain": count(content["wmt"]["params_m"]["plain"]),
        "table": table(
            ["time of an update", "small size", "WMT size"],
            [[label, cell(small[name]), cell(wmt[name])] for name, label in KINDS.items()],
        ),
    }


def _draw_update(results: Results, figure: Figure) -> None:
    panels = figure.subplots(1, 2, sharey=True, sharex=True)
    names = [name for name in KINDS if name.endswith("/ plain")]
    for axes, size, title in zip(panels, ("small", "wmt"), ("small size", "WMT size"), strict=True):
        found = ratios(results, size)
        for place, name in enumerate(names):
            ratio = found[name]
            interval(axes, -place, ratio["q25"], ratio["median"], ratio["q75"], COLOURS[0])
        axes.axvline(1, color=GREY, linewidth=1.4)
        axes.set_title(title)
    figure.supxlabel("time of an update / fairseq's transformer", fontsize="medium")
    panels[0].set_yticks([-place for place in range(len(names))], [KINDS[name].split(" / ")[0] for name in names])


UPDATE = Section(
    "Cost of an update",
    ("supernet_update", "teacher_update"),
    lambda results: {**_update(results), **_teacher(results)},
    Picture(
        "cost-of-an-update",
        "Time of an update relative to fairseq's transformer, median and quartiles",
        _draw_update,
        (6.8, 2.6),
    ),
)
SECTIONS = (TRANSLATION, SECTION_IMAGES, UPDATE)
