"""Which networks to train next: those that are expected to move the front of trained networks most."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nas_core.files import read_jsonl, write_atomic
from nas_core.predictor.acquisition import expected_improvement
from nas_core.search.archive import ParetoArchive
from nas_core.search.calibration.model import Calibration
from nas_core.search.calibration.searched import calibrated_name, objective_of
from nas_core.search.finalists import choose_finalists
from nas_core.space import Architecture

NEXT = "train_next.jsonl"
"""Networks to train next, in the folder of a search."""

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Following:
    """A network that is worth training next."""

    architecture: Architecture
    metrics: Mapping[str, float]
    """What it was evaluated to, estimate and costs among them"""
    gain: float | None
    """The expected improvement for which it was taken; None without trained networks"""


def next_to_train(
    calibration: Calibration,
    evaluated: Mapping[Architecture, Mapping[str, float]],
    cost: str | None = None,
    trained_costs: Mapping[Architecture, float] | None = None,
    count: int = 4,
) -> list[Following]:
    """Choose networks that would change the front of the trained ones most, one after the other.

    Each is of largest expected hypervolume improvement (Emmerich, Giannakoglou and Naujoks 2006): costs are known, so
    that it is the expected improvement over the best trained network that costs no more, summed over costs. Then it is
    believed to reach what is estimated, and the next is chosen beside it (Ginsbourger, Le Riche and Carraro 2010). With
    no cost it is expected improvement over the best. A calibration that was fitted to no network has no spread: then
    networks spread evenly along the front of estimates are chosen.

    Args:
        evaluated: candidates with the metrics that :func:`~nas_core.search.calibration.calibrated_metrics` gave them.
        cost: what is weighed against the estimate, a metric that smaller is better of.
        trained_costs: that cost of the networks the calibration was fitted to.
        count: how many at most.
    """
    name = calibrated_name(calibration)
    needed = [name, *([cost] if cost else [])]
    able = {
        one: metrics
        for one, metrics in evaluated.items()
        if one not in calibration.trained and all(key in metrics for key in needed)
    }
    if not calibration.fitted:
        archive = ParetoArchive([objective_of(calibration), *needed[1:]])
        for one, metrics in able.items():
            archive.add(one, metrics)
        return [Following(one.architecture, one.metrics, None) for one in choose_finalists({}, archive, count)]
    sign = 1.0 if calibration.larger else -1.0
    networks = list(able)
    mean = sign * np.array([able[one][name] for one in networks])
    spread = np.array([able[one][f"{name}_spread"] for one in networks])
    costs = np.array([able[one][cost] if cost else 0.0 for one in networks])
    known = {one: sign * value for one, value in calibration.trained.items()}
    front = np.array([[(trained_costs or {}).get(one, 0.0), value] for one, value in known.items()])
    found: list[Following] = []
    least = float(np.concatenate([front[:, 1], mean - spread]).min())  # below all, also those that will be believed
    left = np.ones(len(networks), bool)
    while len(found) < count and left.any():
        gains = np.where(left, expected_gain(mean, spread, costs, front, least), -np.inf)
        best = int(gains.argmax())
        left[best] = False
        found.append(Following(networks[best], able[networks[best]], float(gains[best])))
        front = np.concatenate([front, [[costs[best], mean[best]]]])
    return found


def expected_gain(mean: Array, spread: Array, costs: Array, front: Array, least: float | None = None) -> Array:
    """Expected hypervolume improvement ``(B,)`` of networks of known cost and normally distributed quality, larger
    being better.

    Args:
        mean: ``(B,)`` estimates; ``spread``: their standard deviations; ``costs``: what they cost.
        front: ``(n, 2)`` costs and qualities of networks that are known. The volume reaches up to the largest of all
            costs. Where all costs are equal, improvement is that of quality.
        least: down to which quality the volume reaches; default: the worst of those that are known.
    """
    order = np.argsort(front[:, 0], kind="stable")
    known, best = front[order, 0], np.maximum.accumulate(front[order, 1])
    if np.ptp(np.concatenate([known, costs])) == 0:
        return expected_improvement(mean, spread, float(best[-1]))
    most = max(float(known.max()), float(costs.max()))
    reach = most + 0.1 * (most - min(float(known.min()), float(costs.min())))  # or the costliest would gain nothing
    starts = np.concatenate([[-np.inf], known])
    ends = np.concatenate([known, [reach]])
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
    """Choose networks to train next and write them into the folder of a search, as ``nas-ext lab calibrate --trained``
    reads them but for the results, which are null. Lines of an earlier search whose results were filled in are kept.

    Returns:
        For each network its key, the estimate, and the cost, by name.
    """
    trained = {one: float(on_paper(one)[cost]) for one in calibration.trained} if cost else {}
    chosen = next_to_train(calibration, evaluated, cost, trained, count)
    if not chosen:
        return []
    name, objective = calibrated_name(calibration), objective_of(calibration)
    test_set = {"test_set": said} if (said := calibration.info.get("test_set")) else {}
    filled = _filled(folder / NEXT)
    lines, rows = [json.dumps(record) + "\n" for record in filled.values()], []
    for one in chosen:
        shown = [key for key in one.metrics if key == cost or (key.startswith(name) and key != objective)]
        expected = {key: one.metrics[key] for key in (*shown, *([name] if name not in shown else []))}
        genes, key = one.architecture.to_dict(), one.architecture.key
        record = {"key": key, "metrics": {calibration.metric: None}, **test_set, "genes": genes, "expected": expected}
        lines += [] if key in filled else [json.dumps(record) + "\n"]
        order = [column for column in (name, f"{name}_spread", cost) if column in expected]
        rows.append({"key": key, **{column: expected[column] for column in order}})
    write_atomic(folder / NEXT, "".join(lines))
    return rows


def _filled(path: Path) -> dict[str, dict[str, Any]]:
    """Return records that somebody wrote a result into, by their network."""
    records = read_jsonl(path) if path.exists() else []
    return {
        str(record.get("key")): record
        for record in records
        if isinstance(metrics := record.get("metrics"), dict) and any(value is not None for value in metrics.values())
    }
