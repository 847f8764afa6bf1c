"""What each study says of a small supernet of each host."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.page.results import Results
from benchmarks.page.section import Section
from benchmarks.page.words import count, fixed, table

__all__ = ["SECTIONS"]

NAME = "study_figures"
HOSTS = {"fairseq": "translation", "timm": "images"}
TABLES: dict[str, dict[str, tuple[str, int, float]]] = {
    "gap": {
        "networks": ("architectures", 0, 1), "error": ("error", 3, 1), "tau": ("tau", 2, 1), "bias": ("bias", 3, 1),
    },
    "routing": {
        "smallest to largest": ("extremes", 3, 1), "all pairs, mean": ("mean", 3, 1),
        "correlation with size": ("by_size", 2, 1),
    },
    "conflict": {"cosine of the smallest": ("smallest", 3, 1), "mean but the largest": ("mean", 3, 1)},
    "close-gap": {
        "networks": ("architectures", 0, 1), "further updates": ("updates", 0, 1), "reached (%)": ("reached", 0, 100),
        "updates saved (%)": ("saved", 0, 100),
    },
    "experts": {
        "experts": ("experts", 0, 1), "M parameters": ("parameters_m", 2, 1), "smallest": ("smallest", 3, 1),
        "largest": ("largest", 3, 1), "mean": ("mean", 3, 1),
    },
    "router": {
        "layers": ("router_layers", 0, 1), "M parameters": ("parameters_m", 2, 1), "smallest": ("smallest", 3, 1),
        "largest": ("largest", 3, 1), "mean": ("mean", 3, 1),
    },
    "stability": {
        "seeds": ("seeds", 0, 1), "loss": ("mean", 3, 1), "deviation": ("deviation", 4, 1),
        "different networks": ("networks", 0, 1),
    },
    "overhead": {
        "step, more (%)": ("step_ms_more", 0, 100), "pass, more (%)": ("pass_ms_more", 0, 100),
        "memory, more (%)": ("memory_mb_more", 0, 100), "M parameters": ("parameters_m", 2, 1),
        "without experts": ("plain_parameters_m", 2, 1),
    },
}  # fmt: skip
"""Study -> heading -> what it is called there, digits, and by what it is multiplied."""


def _table(name: str, hosts: Mapping[str, Mapping[str, Any]]) -> str:
    columns = TABLES[name]
    rows = [
        [HOSTS[host], *(_cell(row.get(key), digits, factor) for key, digits, factor in columns.values())]
        for host, found in hosts.items()
        for row in found[name]["summary"]
    ]
    return table([f"`{name}`", *columns], rows)


def _cell(value: float | None, digits: int, factor: float) -> str:
    return "" if value is None else fixed(factor * value, digits)


def _studies(results: Results) -> Mapping[str, str]:
    content = results[NAME]
    names = [name for name in TABLES if all(name in found for found in content["hosts"].values())]
    return {
        "tables": "\n\n".join(_table(name, content["hosts"]) for name in names),
        **{key: count(content[key]) for key in ("updates", "tokens", "images", "batch", "examples")},
    }


SECTIONS = [Section("Studies of a supernet", (NAME,), _studies, optional=True)]
