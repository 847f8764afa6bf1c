"""The catalogue of figures that any page may show: every value of every section, and the table of headlines."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from statistics import mean

from benchmarks.page.document import SECTIONS, sections
from benchmarks.page.pictures import crossing
from benchmarks.page.results import Results
from benchmarks.page.section import anchor
from benchmarks.page.sections.accuracy import BENCHMARKS, HEADLINE, tau
from benchmarks.page.sections.attention import speed_ups
from benchmarks.page.sections.front import found, shallow, trade
from benchmarks.page.sections.networks import error
from benchmarks.page.sections.onnx import decoding_times, same_tokens
from benchmarks.page.sections.search import DEFAULT_RANKNAS, course
from benchmarks.page.sections.supernet import bleu, from_scratch, ratios
from benchmarks.page.words import count, fixed, joined, spread, table, times

__all__ = ["TABLES", "figures"]

_WHOLE = (
    "table", "scale_table", "parts", "variants", "by_updates", "front", "single", "placements", "networks", "search",
    "one_percent", "mixtures", "further", "marks", "upper_bound",
)  # fmt: skip
"""Values that are tables, which stand on the page of results alone."""


def figures(results: Results) -> dict[str, str]:
    """Every figure by its key, ``SECTION.VALUE`` as in ``linear-attention.crossing``."""
    return {
        f"{name}.{key}": value
        for name, section in sections(results).items()
        for key, value in section.values(results).items()
        if key not in _WHOLE
    }


def headlines(results: Results, link: str = "") -> str:
    """The figures that matter most, each with what it is compared with; ``link`` is the path of the page of results."""
    rows = [row(results) for row in (_faster, _bleu, _update, _search, _tau, _families, _published, _linear, _decoding)]
    return table(
        ["what", "ours", "compared with", "measured by"],
        [[f"[{what}]({link}#{section})", ours, reference, f"`{SECTIONS[section].names[0]}`"]
         for what, section, ours, reference in rows],
        left=4,
    )  # fmt: skip


TABLES: Mapping[str, Callable[[Results, str], str]] = {"headlines": headlines}

Row = tuple[str, str, str, str]
"""What, the section, our figure, the reference."""


def _faster(results: Results) -> Row:
    updates = count(results["demo_front"]["updates"])
    simple = joined(f"with {row['network']} {trade(results, row)}" for row in shallow(results))
    return (
        "A network found under a latency limit, trained from scratch, against the largest one (`make demo`)",
        anchor("Faster at how much BLEU"),
        f"{trade(results, found(results))} ({updates} updates of the supernet and as many of the network)",
        f"the largest {simple} ({updates} updates each)",
    )


def _bleu(results: Results) -> Row:
    content = results["translation_quality"]
    passes = count(3 * content["updates"])
    ours, plain = (fixed(bleu(results, experts, "largest")) for experts in ("neuron", "none"))
    what = "BLEU of a supernet's largest subnet, weights inherited (Multi30k en-de; one of many networks it holds)"
    reference = f"from scratch {from_scratch(results)}; supernet without experts {plain}"
    return what, anchor("Translation"), f"{ours} (sandwich rule, {passes} passes)", reference


def _update(results: Results) -> Row:
    sizes = [ratios(results, size) for size in ("small", "wmt")]
    plain, experts = ([times(size[f"{name} / plain"]["median"], 2) for size in sizes] for name in ("none", "neuron"))
    teacher = results["teacher_update"]
    sandwich = teacher["sandwich"]["update_ms"]["none"]["median"] / teacher["spos"]["update_ms"]["none"]["median"]
    ours = (
        f"{plain[0]} small, {plain[1]} WMT size; with neuron-wise experts {experts[0]}, {experts[1]}; by the sandwich"
        f" rule (three subnets) {fixed(sandwich)} times as much"
    )
    return (
        "Time of a supernet's training update of one random subnet",
        "cost-of-an-update",
        ours,
        "fairseq's plain `transformer` of the same sizes",
    )


def _search(results: Results) -> Row:
    rows = {name: course(results, name) for name in (DEFAULT_RANKNAS, "hat evolution", "random")}
    budget = str(rows[DEFAULT_RANKNAS]["evaluations"][0])
    ours, hat, random = (fixed(row["mean_loss_after"][budget], 3) for row in rows.values())
    final = fixed(mean(rows["hat evolution"]["final_loss"]), 3)
    made = spread(rows["hat evolution"]["evaluations"])
    return (
        f"Loss under a latency limit after {budget} evaluations (bits per token)",
        "search-under-a-limit",
        f"{ours} (RankNAS, default pruning)",
        f"{hat} HAT's evolution, which ends at {final} after {made}; {random} random search",
    )


def _tau(results: Results) -> Row:
    rows = {name: tau(results, name) for name in BENCHMARKS}
    ours, theirs = (", ".join(fixed(rows[name][key], 3) for name in BENCHMARKS) for key in ("tau", "paper"))
    shares = joined(f"{fixed(100 * row['network_share'], 0)} %" for row in rows.values())
    networks = joined(fixed(row["parts"]["networks"], 3) for row in rows.values())
    what = "Kendall's tau of predicted accuracy, " + ", ".join(
        f"{label} from {HEADLINE[name]} cells" for name, label in BENCHMARKS.items()
    )
    return (
        what,
        "accuracy-predictors",
        f"{ours} (a mixture, {shares} of it NN-Former; its NN-Former alone {networks})",
        f"{theirs} in the NN-Former paper (best of three checkpoints on the test; its code learns NAS-Bench-101"
        " from means of three runs, here from one)",
    )


def _families(results: Results) -> Row:
    what = "Error of predicted latency on families of networks left out of the training"
    others = f"{fixed(error(results, 'graphsage'))} % GraphSAGE, {fixed(error(results, 'flops'))} % FLOPs"
    return what, "network-latency", f"{fixed(error(results, 'ensemble'))} %", others


def _published(results: Results) -> Row:
    one = results["published_networks"]["batches"]["1"]
    ours = f"{fixed(one['mape_percent'])} % (median {fixed(one['median_percent'])} %)"
    what = f"The same on {one['networks']} held-out networks of timm"
    return (
        what,
        "published-networks",
        ours,
        f"measurement; {fixed(one['within_spread_percent'], 0)} % lie within the predicted spread",
    )


def _linear(results: Results) -> Row:
    found = speed_ups(results, "causal forward")
    far = max(found)
    first = count(round(crossing(found, found.values()), -1))
    ours = f"{fixed(found[far], 0)} x at {count(far)} positions, faster from about {first} on"
    return "Speed of causal linear attention", "linear-attention", ours, "torch's fused softmax attention"


def _decoding(results: Results) -> Row:
    same, whole = same_tokens(results)
    found = [decoding_times(results, name, batch) for name in results["onnx_export"]["subnets"] for batch in (1, 16)]
    ours = f"{count(same)} of {count(whole)} sentences the same; {spread(found, 1)} x as fast"
    return (
        "Exported networks in onnxruntime",
        "decoding",
        ours,
        "torch eager and fairseq's greedy search, the same networks",
    )
