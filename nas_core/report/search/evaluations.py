"""All evaluations of a search as flat tables, and which genes they show to matter."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from nas_core.files import write_atomic
from nas_core.report.search.run import SearchRun
from nas_core.report.tables import Column, Table
from nas_core.search.strategies.ranker import tau_importance
from nas_core.space import Architecture

__all__ = ["evaluation_records", "importance", "write_evaluations"]

FEWEST = 10
"""Evaluations below which a rank correlation says nothing."""


def evaluation_records(run: SearchRun) -> list[dict[str, Any]]:
    """One flat record per evaluation, all with the same keys: ``index``, ``search``, ``key``, ``error``, the metrics
    (what was minimised first), the genes; None where one has no value."""
    metrics = [*dict.fromkeys((run.metric, *run.costs)), *sorted(run.others)]
    metrics = [name for name in metrics if any(run.value(e["metrics"], name) is not None for e in run.evaluations)]
    genes = sorted({name for evaluation in run.evaluations for name in evaluation.get("genes", {})})
    return [
        {
            "index": evaluation.get("index", place),
            "search": evaluation["search"],
            "key": evaluation.get("key"),
            "error": evaluation.get("error"),
            **{name: run.value(evaluation["metrics"], name) for name in metrics},
            **{name: evaluation.get("genes", {}).get(name) for name in genes},
        }
        for place, evaluation in enumerate(run.evaluations)
    ]


def write_evaluations(run: SearchRun) -> None:
    """``evaluations.jsonl``, and ``evaluations.csv`` where the options of a gene's layers are separated by spaces."""
    records = evaluation_records(run)
    lines = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
    write_atomic(run.folder / "evaluations.jsonl", lines)
    rows = [{name: _cell(value) for name, value in record.items()} for record in records]
    write_atomic(run.folder / "evaluations.csv", Table([Column(name, name) for name in records[0]], rows).csv())


def _cell(value: Any) -> Any:
    return " ".join(map(str, value)) if isinstance(value, list) else value


def importance(run: SearchRun) -> dict[str, dict[str, float]]:
    """Metric -> gene -> |Kendall's tau| between the two over the evaluations of all searches, for what was minimised
    and then the costs. A gene of layers counts with its mean. Empty if the run does not tell its space; metrics with
    less than :data:`FEWEST` values are left out.

    Raises:
        ArchitectureError: an evaluation from outside the space.
    """
    space = run.space
    found: dict[str, dict[str, float]] = {}
    for metric in (run.metric, *run.costs) if space else ():
        known = [e for e in run.evaluations if run.value(e["metrics"], metric) is not None]
        if space is not None and len(known) >= FEWEST:
            features = space.encode([Architecture(e["genes"]) for e in known]).astype(np.float64)
            taus = tau_importance(features, np.array([run.value(e["metrics"], metric) for e in known], np.float64))
            found[metric] = dict(zip((choice.name for choice in space.choices), taus.tolist(), strict=True))
    return found
