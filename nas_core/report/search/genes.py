"""Which genes of a search are worth showing: those that were searched, and among a few networks those that differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nas_core.report.search.limits import limit_notes
from nas_core.report.search.run import SearchRun, finalists_table
from nas_core.report.tables import describe
from nas_core.space import Architecture

__all__ = ["finalists_text", "fixed_genes", "searched_genes", "told_apart"]


def searched_genes(run: SearchRun) -> list[str]:
    """Genes with more than one option, in the order of the space; all that there are where the space is not told.

    Raises:
        SpaceError: what the run's settings hold is no space.
    """
    if run.space is None:
        return list(dict.fromkeys(name for one in run.evaluations for name in one.get("genes", {})))
    return [choice.name for choice in run.space.choices if any(len(options) > 1 for options in choice.options)]


def fixed_genes(run: SearchRun) -> dict[str, Any]:
    """Genes that all networks of the space share, with their values."""
    searched = set(searched_genes(run))
    genes = next((one.get("genes") or {} for one in run.evaluations), {})
    return {name: value for name, value in genes.items() if name not in searched}


def told_apart(genes: Mapping[str, Mapping[str, Any]], searched: Sequence[str]) -> dict[str, str]:
    """Title -> what sets that network apart, in one line; under ``all of them`` what they have in common.

    Args:
        genes: title -> genes of one network.
        searched: names of the genes that count.
    """
    networks = {title: {n: one[n] for n in searched if n in one} for title, one in genes.items()}
    first = next(iter(networks.values()), {})
    common = {n: value for n, value in first.items() if all(one.get(n) == value for one in networks.values())}
    if len(networks) < 2:
        common = {}
    lines = {"all of them": describe(Architecture(common))} if common else {}
    for title, one in networks.items():
        rest = {name: value for name, value in one.items() if name not in common}
        lines[title] = describe(Architecture(rest)) if rest else "nothing else"
    return lines


def finalists_text(run: SearchRun) -> str:
    """Return the finalists for a terminal: their metrics, what measurements say about the limits, and the file of each
    with the genes that set it apart.

    Raises:
        SpaceError: what the run's settings hold is no space.
    """
    table = finalists_table(run)
    known = {finalist["key"]: finalist for finalist in run.finalists}
    listed = {row["architecture"]: known[row["architecture"]]["genes"] for row in table.rows}
    apart = told_apart(listed, searched_genes(run))
    head = "Finalists by file, with the genes that differ:" if len(listed) > 1 else "The finalist's file and genes:"
    files = [f"{run.folder / known[key].get('file', key)}  {apart[key]}" for key in listed]
    return "\n".join([table.text(), *limit_notes(run), head, *files])
