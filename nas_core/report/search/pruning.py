"""What RankNAS has learned about the genes: which matter to what, and which it has left free."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nas_core.errors import DataError
from nas_core.files import read_json
from nas_core.report.search.checks import is_number
from nas_core.report.tables import Column, Table

__all__ = ["genes_tables"]


def genes_tables(folder: Path) -> dict[str, Table]:
    """Search -> its genes with their importance for the metric and for each limit, and whether they stay free; the most
    important first. Empty where no search of ``state.json`` tells it."""
    try:
        content = read_json(folder / "state.json")
    except DataError:  # missing or half written: it only tells how far a search is
        return {}
    searches = content.get("searches") if isinstance(content, Mapping) else None
    entries = searches.items() if isinstance(searches, Mapping) else ()
    return {str(name): _table(entry) for name, entry in entries if isinstance(entry, Mapping) and _tells(entry)}


def _tells(entry: Mapping[str, Any]) -> bool:
    importance = entry.get("importance")
    if not isinstance(importance, Mapping) or not isinstance(entry.get("free_genes"), list):
        return False
    return bool(importance) and all(
        isinstance(genes, Mapping) and all(map(is_number, genes.values())) for genes in importance.values()
    )


def _table(entry: Mapping[str, Any]) -> Table:
    importance: Mapping[str, Mapping[str, float]] = entry["importance"]
    free = entry["free_genes"]
    genes = list(dict.fromkeys(gene for values in importance.values() for gene in values))
    genes.sort(key=lambda gene: -max(values.get(gene, 0.0) for values in importance.values()))
    rows = [
        {
            "gene": gene,
            **{metric: values.get(gene) for metric, values in importance.items()},
            "searched": "free" if gene in free else "set to the preferred option",
        }
        for gene in genes
    ]
    metrics = [Column(metric, f"{metric} (|tau|)", ".2f") for metric in importance]
    return Table([Column("gene", "gene"), *metrics, Column("searched", "in the last ranking")], rows)
