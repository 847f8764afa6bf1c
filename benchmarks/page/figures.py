"""The catalogue of figures that any page may show: every value of every section, and the table of eight."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from benchmarks.page.document import SECTIONS, sections
from benchmarks.page.pictures import crossing
from benchmarks.page.results import Results
from benchmarks.page.section import anchor
from benchmarks.page.sections.accuracy import BENCHMARKS, HEADLINE, tau
from benchmarks.page.sections.attention import speed_ups
from benchmarks.page.sections.networks import error
from benchmarks.page.sections.onnx import decoding_times, same_tokens
from benchmarks.page.sections.search import course
from benchmarks.page.sections.supernet import bleu, ratios
from benchmarks.page.words import count, fixed, spread, table, times

__all__ = ["TABLES", "figures"]

_WHOLE = (
    "table", "scale_table", "parts", "variants", "by_updates", "front", "single", "placements", "networks", "search",
    "one_percent", "mixtures", "further", "marks",
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


def eight_figures(results: Results, link: str = "") -> str:
    """The figures that matter most, each with what it is compared with; ``link`` is the path of the page of results."""
    rows = [row(results) for row in (_bleu, _update, _search, _tau, _families, _published, _linear, _decoding)]
    return table(
        ["what", "ours", "compared with", "measured by"],
        [[f"[{what}]({link}#{section})", ours, reference, f"`{SECTIONS[section].names[0]}`"]
         for what, section, ours, reference in rows],
        left=4,
    )  # fmt: skip


TABLES: Mapping[str, Callable[[Results, str], str]] = {"eight-figures": eight_figures}

Row = tuple[str, str, str, str]
"""What, the section, our figure, the reference."""


def _bleu(results: Results) -> Row:
    ours = fixed(bleu(results, "neuron", "largest"))
    alone, hat = fixed(bleu(results, "standalone", "largest", "bleu")), fixed(bleu(results, "none", "largest"))
    what = "BLEU of a supernet's largest subnet, weights inherited (Multi30k en-de)"
    return what, anchor("Translation"), ours, f"{alone} trained from scratch, {hat} in HAT's supernet without experts"


def _update(results: Results) -> Row:
    found = [ratios(results, size)["none / plain"]["median"] for size in ("small", "wmt")]
    experts = [ratios(results, size)["neuron / none"]["median"] for size in ("small", "wmt")]
    ours = f"{times(found[0], 2)} small, {times(found[1], 2)} WMT size; with experts {spread(experts, 2)} x of that"
    return (
        "Time of a supernet's training update",
        "cost-of-an-update",
        ours,
        "fairseq's plain `transformer` of the same sizes",
    )


def _search(results: Results) -> Row:
    free, hat = course(results, "ranknas, all genes"), course(results, "hat evolution")
    key = "evaluations_to_evolutions_final_loss"
    what = "Evaluations until a search under a latency limit has HAT's final loss"
    return (
        what,
        "search-under-a-limit",
        f"{spread(free[key])} (RankNAS)",
        (f"{spread(hat[key])} of {spread(hat['evaluations'])} (HAT's evolution)"),
    )


def _tau(results: Results) -> Row:
    rows = {name: tau(results, name) for name in BENCHMARKS}
    ours, theirs = (", ".join(fixed(rows[name][key], 3) for name in BENCHMARKS) for key in ("tau", "paper"))
    what = "Kendall's tau of predicted accuracy, " + ", ".join(
        f"{label} from {HEADLINE[name]} cells" for name, label in BENCHMARKS.items()
    )
    return what, "accuracy-predictors", ours, f"{theirs} in the NN-Former paper (best of three checkpoints on the test)"


def _families(results: Results) -> Row:
    what = "Error of predicted latency on families of networks left out of the training"
    others = f"{fixed(error(results, 'graphsage'))} % GraphSAGE, {fixed(error(results, 'flops'))} % FLOPs"
    return what, "network-latency", f"{fixed(error(results, 'ensemble'))} %", others


def _published(results: Results) -> Row:
    one = results["published_networks"]["batches"]["1"]
    ours = f"{fixed(one['mape_percent'])} % (median {fixed(one['median_percent'])} %)"
    what = f"The same on {one['networks']} networks of timm that nothing was chosen on"
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
