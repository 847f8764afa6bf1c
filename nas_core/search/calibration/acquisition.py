"""Selection of networks to train next by expected hypervolume improvement."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nas_core.files.journal import read_jsonl
from nas_core.files.writing import write_atomic
from nas_core.predictor.acquisition import expected_improvement
from nas_core.search.archive import ParetoArchive
from nas_core.search.calibration.model import Calibration, calibrated_name, objective_of
from nas_core.search.finalists import choose_finalists
from nas_core.space import Architecture

NEXT = "train_next.jsonl"

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Candidate:
    """Network suggested for training."""

    architecture: Architecture
    metrics: Mapping[str, float]
    gain: float | None
    """Expected improvement; None if the calibration was fitted to no network"""


def next_to_train(
    calibration: Calibration,
    evaluated: Mapping[Architecture, Mapping[str, float]],
    cost: str | None = None,
    trained_costs: Mapping[Architecture, float] | None = None,
    count: int = 4,
) -> list[Candidate]:
    """Choose ``count`` networks one by one, each with the largest expected hypervolume improvement.

    With a cost, the expected improvement over the best trained network of at most this cost is integrated over costs
    (Emmerich, Giannakoglou and Naujoks 2006). After each choice, its estimate counts as a result (Ginsbourger, Le Riche
    and Carraro 2010). If the calibration is not fitted, the choices are spaced evenly along the Pareto front.

    Args:
        evaluated: architecture -> metrics, with the calibration's estimate.
        cost: second metric to minimise.
        trained_costs: costs of the trained networks.
    """
    name = calibrated_name(calibration)
    needed = [name, *([cost] if cost else [])]
    candidates = {
        architecture: metrics
        for architecture, metrics in evaluated.items()
        if architecture not in calibration.trained and all(key in metrics for key in needed)
    }
    if not calibration.fitted:
        archive = ParetoArchive([objective_of(calibration), *needed[1:]])
        for architecture, metrics in candidates.items():
            archive.add(architecture, metrics)
        return [Candidate(entry.architecture, entry.metrics, None) for entry in choose_finalists({}, archive, count)]
    sign = 1.0 if calibration.larger else -1.0
    networks, metrics_of = list(candidates), list(candidates.values())
    mean = sign * np.array([metrics[name] for metrics in metrics_of])
    deviation = np.array([metrics[f"{name}_spread"] for metrics in metrics_of])
    costs = np.array([metrics[cost] if cost else 0.0 for metrics in metrics_of])
    front = np.array(
        [[(trained_costs or {}).get(network, 0.0), sign * value] for network, value in calibration.trained.items()]
    )
    chosen: list[Candidate] = []
    least = float(np.concatenate([front[:, 1], mean - deviation]).min())  # below all, later additions included
    available = np.ones(len(networks), bool)
    while len(chosen) < count and available.any():
        gains = np.where(available, expected_gain(mean, deviation, costs, front, least), -np.inf)
        best = int(gains.argmax())
        available[best] = False
        chosen.append(Candidate(networks[best], metrics_of[best], float(gains[best])))
        front = np.concatenate([front, [[costs[best], mean[best]]]])
    return chosen


def expected_gain(mean: Array, spread: Array, costs: Array, front: Array, least: float | None = None) -> Array:
    """Return the expected hypervolume improvement ``(B,)`` for normally distributed quality.

    Args:
        mean: expected quality ``(B,)``, larger is better.
        spread: standard deviations ``(B,)``.
        costs: costs ``(B,)``; if these and those in ``front`` are all equal, the result is the expected improvement
            of the quality.
        front: costs and qualities ``(n, 2)`` of trained networks.
        least: lower bound of the quality; default: the worst in ``front``.
    """
    order = np.argsort(front[:, 0], kind="stable")
    front_costs, best = front[order, 0], np.maximum.accumulate(front[order, 1])
    if np.ptp(np.concatenate([front_costs, costs])) == 0:
        return expected_improvement(mean, spread, float(best[-1]))
    most = max(float(front_costs.max()), float(costs.max()))
    reach = most + 0.1 * (
        most - min(float(front_costs.min()), float(costs.min()))
    )  # so that the most expensive ones gain something
    starts = np.concatenate([[-np.inf], front_costs])
    ends = np.concatenate([front_costs, [reach]])
    levels = np.concatenate([[front[:, 1].min() if least is None else least], best])
    gain = np.zeros(len(mean))
    for start, end, level in zip(starts, ends, levels, strict=True):
        width = np.maximum(end - np.maximum(costs, start), 0.0)
        gain += width * expected_improvement(mean, spread, float(level))
    return gain


def write_next(
    folder: Path,
    calibration: Calibration,
    evaluated: Mapping[Architecture, Mapping[str, float]],
    cost: str | None,
    on_paper: Callable[[Architecture], Mapping[str, float]],
    count: int,
) -> list[dict[str, Any]]:
    """Write ``train_next.jsonl`` with networks to train next; return key, estimate and cost of each.

    Earlier lines with a result are kept. ``nas-ext lab calibrate --trained`` reads the file.

    Args:
        evaluated, cost: as for :func:`next_to_train`.
        on_paper: function that computes costs of an architecture.
    """
    trained = {network: float(on_paper(network)[cost]) for network in calibration.trained} if cost else {}
    chosen = next_to_train(calibration, evaluated, cost, trained, count)
    if not chosen:
        return []
    name, objective = calibrated_name(calibration), objective_of(calibration)
    test_set = {"test_set": used_set} if (used_set := calibration.info.get("test_set")) else {}
    path = folder / NEXT
    filled = {
        str(record.get("key")): record
        for record in (read_jsonl(path) if path.exists() else [])
        if any(value is not None for value in (record.get("metrics") or {}).values())
    }
    lines, rows = [json.dumps(record) + "\n" for record in filled.values()], []
    for candidate in chosen:
        metrics = candidate.metrics
        expected = {k: metrics[k] for k in metrics if k == cost or (k.startswith(name) and k != objective)}
        expected.setdefault(name, metrics[name])
        genes, key = candidate.architecture.to_dict(), candidate.architecture.key
        record = {"key": key, "metrics": {calibration.metric: None}, **test_set, "genes": genes, "expected": expected}
        lines += [] if key in filled else [json.dumps(record) + "\n"]
        order = [column for column in (name, f"{name}_spread", cost) if column in expected]
        rows.append({"key": key, **{column: expected[column] for column in order}})
    write_atomic(path, "".join(lines))
    return rows
