"""The whole page: what stands above the sections, and their order."""

from __future__ import annotations

import hashlib
import json

from benchmarks.page.results import Results
from benchmarks.page.section import TEXTS, Section, anchor
from benchmarks.page.sections import (
    attention,
    calibration,
    front,
    language,
    latency,
    networks,
    onnx,
    predictor,
    prior,
    proxies,
    samplers,
    search,
    supernet,
    timm_networks,
    trained,
    trust,
)
from benchmarks.page.sections.elsewhere import gpus, machines
from nas_core.errors import DataError

__all__ = ["GROUPS", "NOT_SHOWN", "SECTIONS", "page", "sections", "stamp"]

_ALL = {
    anchor(section.title): section
    for module in (
        front, supernet, attention, search, samplers, predictor, prior, proxies, latency, networks,
        timm_networks, onnx, language, trained, calibration, trust,
    )
    for section in module.SECTIONS
}  # fmt: skip
GROUPS = {
    "What quality": (
        "faster-at-how-much-bleu", "translation", "estimates-of-supernets", "estimates-at-equal-passes",
        "further-training", "estimates-of-bert-supernets", "studies-of-a-supernet", "real-bleu", "attention-quality",
        "images",
    ),
    "What a trained model is worth": (
        "from-a-trained-translation-model", "from-a-trained-image-model", "from-a-trained-masked-language-model",
        "attention-of-a-trained-model",
    ),
    "What speed": ("linear-attention", "cost-of-an-update", "decoding", "decoding-by-position"),
    "What search saves": ("search-under-a-limit", "queries", "samplers-of-optuna", "robustness", "search-speed"),
    "How far to trust predictions of accuracy": (
        "accuracy-predictors", "before-anything-is-trained", "zero-cost-proxies", "proxies-beside-graphs",
        "speed-of-nn-former",
    ),
    "How far to trust predictions of latency": (
        "latency-models", "held-out-device", "network-latency", "published-networks", "networks-that-timm-measured",
        "beyond-the-training-sizes", "latency-predictors", "onnx",
    ),
}  # fmt: skip
"""The sections as readers ask for them."""
SECTIONS: dict[str, Section] = {name: _ALL[name] for names in GROUPS.values() for name in names}
"""All sections by anchor, also those whose results are not there yet."""
NOT_SHOWN: dict[str, str] = {}
"""Results that have no place on the page, each with the reason."""


def sections(results: Results) -> dict[str, Section]:
    """The sections that the page has, by anchor."""
    return {name: section for name, section in SECTIONS.items() if section.shown(results)}


def page(results: Results, table: str) -> str:
    """The page as Markdown, with this table above its sections.

    Raises:
        DataError: a result is neither shown nor among those that are not, with a reason.
    """
    shown = {name for section in SECTIONS.values() for name in section.names}
    if forgotten := set(results.names) - shown - set(NOT_SHOWN):
        raise DataError(
            f"{', '.join(sorted(forgotten))}: no section of the page shows this; add one, or a reason to NOT_SHOWN"
        )
    found = sections(results)
    links = [
        f"- {title}: " + ", ".join(f"[{found[name].title}](#{name})" for name in names if name in found)
        for title, names in GROUPS.items()
        if found.keys() & set(names)
    ]
    links += [f"- What was seen elsewhere: [{gpus.TITLE}](#{gpus.ANCHOR}), [{machines.TITLE}](#{machines.ANCHOR})"]
    told = [*(each.markdown(results) for each in found.values()), gpus.on_gpus(results), machines.on_machines(results)]
    head = (TEXTS / "introduction.md").read_text(encoding="utf-8").format(table=table, links="\n".join(links)).strip()
    return "\n\n".join([head, *told]) + "\n"


def stamp(results: Results, section: Section) -> str:
    """A short name of the data behind a section's picture, which the picture carries."""
    content = [results[name] for name in section.names]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]
