"""The whole page: what stands above the sections, and their order."""

from __future__ import annotations

import hashlib
import json

from benchmarks.page.results import Results
from benchmarks.page.section import TEXTS, Section, anchor
from benchmarks.page.sections import attention, language, latency, networks, onnx, predictor, search, supernet
from benchmarks.page.sections.gpus import ANCHOR, TITLE, on_gpus
from nas_core.errors import DataError

__all__ = ["GROUPS", "NOT_SHOWN", "SECTIONS", "page", "stamp"]

_ALL = {
    anchor(section.title): section
    for module in (supernet, attention, search, predictor, latency, networks, onnx, language)
    for section in module.SECTIONS
}
GROUPS = {
    "What quality": ("translation", "attention-quality", "images"),
    "What speed": ("linear-attention", "cost-of-an-update", "decoding", "decoding-by-position"),
    "What search saves": ("search-under-a-limit", "queries", "robustness", "search-speed"),
    "How far to trust predictions of accuracy": ("accuracy-predictors", "speed-of-nn-former"),
    "How far to trust predictions of latency": (
        "latency-models", "held-out-device", "network-latency", "published-networks", "beyond-the-training-sizes",
        "latency-predictors", "onnx",
    ),
}  # fmt: skip
"""The sections as readers ask for them."""
SECTIONS: dict[str, Section] = {name: _ALL[name] for names in GROUPS.values() for name in names}
NOT_SHOWN: dict[str, str] = {}
"""Results that have no place on the page, each with the reason."""


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
    links = "\n".join(
        f"- {title}: " + ", ".join(f"[{SECTIONS[name].title}](#{name})" for name in names)
        for title, names in GROUPS.items()
    )
    links += f"\n- What was seen on GPUs: [{TITLE}](#{ANCHOR})"
    sections = [*(section.markdown(results) for section in SECTIONS.values()), on_gpus(results)]
    head = (TEXTS / "introduction.md").read_text(encoding="utf-8").format(table=table, links=links).strip()
    return "\n\n".join([head, *sections]) + "\n"


def stamp(results: Results, section: Section) -> str:
    """A short name of the data behind a section's picture, which the picture carries."""
    content = [results[name] for name in section.names]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]
