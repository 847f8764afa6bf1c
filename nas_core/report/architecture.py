"""Table and picture of an architecture's layers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nas_core.errors import ArchitectureError
from nas_core.layers.attention import KINDS
from nas_core.report.plots import COLOURS, figure_of, png
from nas_core.report.tables import Column, Table
from nas_core.space import Architecture

_KINDS = {"softmax": ("#1f6fb4", "S"), "linear": ("#d1662b", "L")}
_UNKNOWN = "#6d6d6d"
"""Colour of unknown kinds of attention."""
_ROW, _STRIP = 1.55, 0.42
_LAYER, _NARROWEST = 0.46, 1.6


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
    return {name: _look(name) for name in KINDS.names() if name in kinds}


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


def architecture_picture(networks: Mapping[str, Architecture]) -> bytes:
    """Draw networks ``title -> architecture`` as PNG: bars for numeric genes, coloured cells for named options.

    Raises:
        ArchitectureError: a network has no layers.
    """
    columns = [
        _Column(" ".join(part for part in (title, side) if part), genes)
        for title, architecture in networks.items()
        for side, genes in _layers(architecture).items()
    ]
    names = list(dict.fromkeys(name for column in columns for name in column.genes))
    rows = sorted(names, key=lambda name: not _named(columns, name))
    heights = [_STRIP if _named(columns, name) else _ROW for name in rows]
    widths = [max(_NARROWEST, _LAYER * column.layers) for column in columns]
    size = 1.4 + sum(widths), 1.0 + sum(heights)
    with figure_of(size) as figure:
        grid = figure.subplots(
            len(rows), len(columns), squeeze=False, sharey="row",
            gridspec_kw={"height_ratios": heights, "width_ratios": widths},
        )  # fmt: skip
        for index, column in enumerate(columns):
            _draw([line[index] for line in grid], column, rows)
        for line, name in zip(grid, rows, strict=True):
            flat: dict[str, Any] = {"rotation": 0, "ha": "right", "va": "center"} if _named(columns, name) else {}
            line[0].set_ylabel(name.replace("_", " "), fontsize=9, **flat)
        kinds = sorted({str(value) for column in columns for name in rows for value in column.genes.get(name, ())
                        if isinstance(value, str)})  # fmt: skip
        if kinds:
            from matplotlib.patches import Patch

            handles = [Patch(color=_look(kind)[0], label=kind) for kind in kinds]
            figure.legend(handles=handles, loc="outside upper right", ncols=len(handles), fontsize=9)
        figure.align_ylabels(grid[:, 0])
        return png(figure)


@dataclass(frozen=True)
class _Column:
    title: str
    genes: Mapping[str, tuple[Any, ...]]

    @property
    def layers(self) -> int:
        return max(map(len, self.genes.values()))


def _named(columns: Sequence[_Column], name: str) -> bool:
    return any(isinstance(column.genes[name][0], str) for column in columns if name in column.genes)


def _draw(panels: Sequence[Any], column: _Column, rows: Sequence[str]) -> None:
    panels[0].set_title(column.title, fontsize=10)
    filled = [axes for axes, name in zip(panels, rows, strict=True) if name in column.genes]
    for axes, name in zip(panels, rows, strict=True):
        values = column.genes.get(name, ())
        if not values:
            axes.tick_params(left=False, bottom=False, labelbottom=False)
            axes.grid(visible=False)
            for spine in axes.spines.values():
                spine.set_visible(False)
            continue
        (_strip if isinstance(values[0], str) else _bars)(axes, values)
        axes.set_xlim(0.4, column.layers + 0.6)
        axes.set_xticks(range(1, column.layers + 1))
        axes.tick_params(bottom=False, labelbottom=axes is filled[-1])
    filled[-1].set_xlabel("layer")


def _bars(axes: Any, values: Sequence[float]) -> None:
    for place, value in enumerate(map(float, values), 1):
        axes.bar(place, value, color=COLOURS[2], width=0.72)
        axes.annotate(f"{value:g}", (place, value), (0, 2), textcoords="offset points", ha="center", fontsize=7)
    axes.margins(y=0.16)
    axes.yaxis.get_major_locator().set_params(integer=all(float(value).is_integer() for value in values))
    axes.grid(axis="x", visible=False)


def _look(name: str) -> tuple[str, str]:
    """Return colour and letter of a kind of attention."""
    return _KINDS.get(name, (_UNKNOWN, name[:1].upper()))


def _strip(axes: Any, values: Sequence[str]) -> None:
    for place, value in enumerate(values, 1):
        colour, letter = _look(value)
        axes.bar(place, 1, color=colour, width=0.92)
        axes.text(place, 0.5, letter, ha="center", va="center", color="white", fontsize=8)
    axes.set(ylim=(0, 1), yticks=[])
    axes.grid(visible=False)
    for spine in axes.spines.values():
        spine.set_visible(False)
