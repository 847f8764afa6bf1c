"""Whether what a run folder holds has the form that a search writes; people edit files, and disks damage them."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from typing import Any

__all__ = ["is_evaluation", "is_finalist", "is_number", "wrong_note", "wrong_setting"]


def is_number(value: Any) -> bool:
    """Whether it can be calculated with; NaN can, as failed evaluations may tell it, an int of 400 digits cannot."""
    return isinstance(value, float) or (isinstance(value, int) and abs(value) <= sys.float_info.max)


def is_evaluation(entry: Any) -> bool:
    """Tell whether an entry is an evaluation: its search, metrics that are numbers or None, plain genes."""
    if not isinstance(entry, Mapping) or "search" not in entry or not _are_metrics(entry.get("metrics")):
        return False
    return _are_genes(entry.get("genes", {})) and isinstance(entry.get("error", ""), str | None)


def is_finalist(entry: Any) -> bool:
    """Tell whether an entry is a finalist; whatever but the metrics may be missing."""
    if not isinstance(entry, Mapping) or not _are_metrics(entry.get("metrics")):
        return False
    measured = entry.get("measured", {})
    if not isinstance(measured, Mapping) or not _are_metrics({"latency_ms": measured.get("latency_ms")}):
        return False
    names = [entry.get(part, []) for part in ("best_of", "over_limit")]
    listed = all(isinstance(one, list) and all(isinstance(name, str) for name in one) for one in names)
    return listed and isinstance(entry.get("key", ""), str) and _are_genes(entry.get("genes", {}))


def _are_metrics(metrics: Any) -> bool:
    return isinstance(metrics, Mapping) and all(value is None or is_number(value) for value in metrics.values())


def _are_genes(genes: Any) -> bool:
    return isinstance(genes, Mapping) and all(map(_is_gene, genes.values()))


def _is_gene(gene: Any) -> bool:
    """A finite number, a word, or a list of them."""
    if isinstance(gene, list):
        return all(map(_is_gene, gene))
    return isinstance(gene, str) or (is_number(gene) and math.isfinite(gene))


def wrong_setting(settings: Mapping[str, Any]) -> str | None:
    """What is wrong with the ``settings`` of ``config.yaml``, and what was expected; None if nothing is."""
    objectives, space, searches = (settings.get(name) for name in ("objectives", "space", "searches"))
    if "objectives" in settings and not (
        isinstance(objectives, list) and all(isinstance(name, str) for name in objectives)
    ):
        return f"settings.objectives is {objectives!r}; expected a list of names of metrics"
    if space and not isinstance(space, Mapping):
        return f"settings.space is {space!r}; expected the name and the choices of a space"
    if searches and not (isinstance(searches, Mapping) and all(isinstance(s, Mapping) for s in searches.values())):
        return "settings.searches does not say what searched; expected the settings of each search by its name"
    for name, search in (searches or {}).items():
        limits = search.get("constraints", {})
        if not isinstance(limits, Mapping) or not all(map(is_number, limits.values())):
            return f"constraints of search {name!r} are {limits!r}; expected a number for each metric"
    return None


def wrong_note(notes: Mapping[str, Any]) -> str | None:
    """The same for its ``notes``."""
    for name, expected in (("units", "a unit for each metric"), ("experiment", "its name and id")):
        if notes.get(name) and not isinstance(notes[name], Mapping):
            return f"notes.{name} is {notes[name]!r}; expected {expected}"
    return None
