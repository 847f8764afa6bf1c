"""Metrics and genes of all evaluations as the axes of parallel coordinates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nas_core.report.search.evaluations import importance
from nas_core.report.search.genes import searched_genes
from nas_core.report.search.run import SearchRun

__all__ = ["axes_of", "gene_axis"]

MOST = 14
"""Axes that are still told apart on a page."""
_FEW = 8
"""Up to so many different numbers each has its tick."""


def axes_of(run: SearchRun) -> list[dict[str, Any]]:
    """``label``, ``values`` and, for what is no plain number, ``ticks`` of each axis; failed evaluations are left out.

    Metrics come first, then the genes that matter most to what is searched for; what is equal in all is no axis.

    Raises:
        SpaceError: what the run's settings hold is no space. ArchitectureError: evaluations from outside of it.
    """
    good = [one for one in run.evaluations if run.value(one["metrics"]) is not None]
    axes = []
    for name in (run.metric, *run.costs, *run.others):
        values = [run.value(one["metrics"], name) for one in good]
        if None not in values:
            axes.append({"label": run.described(name).title, "values": values})
    weight = importance(run).get(run.metric, {})
    genes = searched_genes(run)
    for name in sorted(genes, key=lambda name: (-weight.get(name, 0.0), genes.index(name))):
        if (axis := gene_axis(name, [one.get("genes", {}).get(name) for one in good])) is not None:
            axes.append(axis)
    return [axis for axis in axes if len(set(axis["values"])) > 1][:MOST]


def gene_axis(name: str, values: Sequence[Any]) -> dict[str, Any] | None:
    """Numbers as they are, of layers their mean; names by their places, of layers the share of the last one."""
    flat = [option for value in values for option in (value if isinstance(value, list) else [value])]
    if None in flat or any(value == [] for value in values):
        return None  # a gene that some networks lack
    layered = any(isinstance(value, list) for value in values)
    if any(isinstance(option, str) for option in flat):
        names = sorted({str(option) for option in flat})
        if layered:
            share = [float(np.mean([str(option) == names[-1] for option in value])) for value in values]
            return {"label": f"{name}, share of {names[-1]}", "values": share}
        places = [names.index(str(value)) for value in values]
        return {"label": name, "values": places, "ticks": dict(enumerate(names))}
    if layered:
        return {"label": f"{name}, mean", "values": [float(np.mean(value)) for value in values]}
    different = sorted(set(values))
    ticks = {value: f"{value:g}" for value in different} if len(different) <= _FEW else None
    return {"label": name, "values": list(values), "ticks": ticks}
