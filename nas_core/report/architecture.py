"""Table of an architecture's layers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from nas_core.errors import ArchitectureError
from nas_core.layers.attention import ATTENTION_KINDS
from nas_core.report.tables import Column, Table
from nas_core.space import Architecture

_KINDS = {"softmax": ("#1f6fb4", "S"), "linear": ("#d1662b", "L")}
_UNKNOWN = "#6d6d6d"
"""Colour of unknown kinds of attention."""


def _layers(architecture: Architecture) -> dict[str, dict[str, tuple[Any, ...]]]:
    """Return side -> gene -> value of each layer."""
    from nas_core.models.kind import fitting_kind, layered_genes  # imports torch

    kind = fitting_kind(architecture)
    sides = layered_genes(architecture) if kind is None else kind.layers(architecture)
    for name, values in (item for genes in sides.values() for item in genes.items()):
        if len({isinstance(value, str) for value in values}) != 1:
            raise ArchitectureError(f"gene {name!r} is {list(values)}; expected only numbers or only names")
    return sides


def kinds_among(networks: Iterable[Mapping[str, Any]]) -> dict[str, tuple[str, str]]:
    """Return colour and letter of each kind of attention in networks ``gene -> value``."""
    values = (value for genes in networks for value in genes.values())
    kinds = {word for value in values for word in (value if isinstance(value, list | tuple) else [value])
             if isinstance(word, str)}  # fmt: skip
    return {name: _KINDS.get(name, (_UNKNOWN, name[:1].upper())) for name in ATTENTION_KINDS.names() if name in kinds}


def layers_table(architecture: Architecture) -> Table:
    sides = _layers(architecture)
    names = list(dict.fromkeys(name for genes in sides.values() for name in genes))
    rows = [
        {
            "side": side or "network",
            "layer": layer + 1,
            **{name: genes[name][layer] for name in genes if layer < len(genes[name])},
        }
        for side, genes in sides.items()
        for layer in range(max(map(len, genes.values())))
    ]
    numeric = {name for genes in sides.values() for name, values in genes.items() if not isinstance(values[0], str)}
    columns = [Column("side", "side"), Column("layer", "layer", "d")]
    return Table([*columns, *(Column(name, name, "g" if name in numeric else "") for name in names)], rows)
