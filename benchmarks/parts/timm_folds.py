"""Folds of networks of ``nas-ext latency dataset --from-timm``, and the quadratic baseline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nas_core.errors import DataError
from nas_core.latency.by_graph.data import NetworkLatencies
from nas_core.latency.by_graph.dataset.folder import NetworkSet, read_dataset
from nas_core.predictor.metrics import accuracy_within, mape

Floats = NDArray[np.float64]
COSTS = ("gmacs", "macts", "params_m")


@dataclass(frozen=True)
class Published:
    """Published networks with all costs."""

    device: str
    data: NetworkLatencies
    """Families are modules."""
    costs: Floats
    """``(G, 3)`` MACs and activations of a batch, parameters"""
    excluded: dict[str, int]
    """Numbers of excluded networks: ``skipped`` without a graph, ``without costs``."""


def read(folder: Path) -> Published:
    """Read the networks of a folder.

    Raises:
        DataError: it is another folder, or no network has all costs.
    """
    networks = NetworkSet.read(folder)
    data = read_dataset(folder, next(iter(networks.reference_ms)))
    rows = {row["name"]: row for row in networks.rows}
    published = [rows[name].get("published", {}) for name in data.names.tolist()]
    complete = np.array([all(name in costs for name in COSTS) for costs in published])
    if not complete.any():
        raise DataError(
            f"{folder} has no network with {', '.join(COSTS)}; expected a folder of 'nas-ext latency dataset"
            " --from-timm'"
        )
    batch = np.array([rows[name]["settings"]["batch_size"] for name in data.names[complete].tolist()], np.float64)
    table = np.array(
        [[costs[name] for name in COSTS] for costs, is_complete in zip(published, complete, strict=True) if is_complete]
    )
    table[:, :2] *= batch[:, None]
    excluded = {"skipped": len(data.skipped), "without costs": int((~complete).sum())}
    return Published(str(networks.machine["device_name"]), data.take(complete), table, excluded)


def module_folds(modules: Sequence[str], folds: int, seed: int = 0) -> NDArray[np.int64]:
    """Return folds ``(G,)`` of about equal size, with each module in one fold.

    Raises:
        DataError: there are fewer modules than folds.
    """
    names, module_index, sizes = np.unique(np.asarray(modules), return_inverse=True, return_counts=True)
    if len(names) < folds:
        raise DataError(f"there are {len(names)} modules for {folds} folds; expected at least as many modules")
    order = np.random.default_rng(seed).permutation(len(names))
    fold_sizes, fold_of_module = np.zeros(folds), np.zeros(len(names), np.int64)
    for module in sorted(order, key=lambda module: -sizes[module]):
        fold_of_module[module] = int(fold_sizes.argmin())
        fold_sizes[fold_of_module[module]] += sizes[module]
    return fold_of_module[module_index]


def network_folds(count: int, folds: int, seed: int = 0) -> NDArray[np.int64]:
    return np.random.default_rng(seed).permutation(count) % folds


def with_folds(data: NetworkLatencies, folds: NDArray[np.int64], split: str) -> NetworkLatencies:
    return replace(data, families=np.array([f"{split}-{fold}" for fold in folds.tolist()]), skipped=())


def quadratic(costs: Floats, latency_ms: Floats, test_costs: Floats) -> Floats:
    """Predict milliseconds by a quadratic polynomial in the logarithms of MACs, activations and parameters.

    Args:
        costs: ``(G, 3)`` of the networks with ``latency_ms``.
        test_costs: ``(N, 3)``.
    """
    mean = np.log(costs).mean(0)
    weights = np.linalg.lstsq(_terms(np.log(costs) - mean), np.log(latency_ms), rcond=None)[0]
    return np.asarray(np.exp(_terms(np.log(test_costs) - mean) @ weights))


def _terms(logs: Floats) -> Floats:
    first, second = np.triu_indices(logs.shape[1])
    return np.hstack([np.ones((len(logs), 1)), logs, logs[:, first] * logs[:, second]])


def latency_errors(predicted: Floats, measured: Floats) -> dict[str, float]:
    """Return the mean and median absolute percentage error, and the percentage of errors below 10 %."""
    return {
        "mape_percent": round(mape(predicted, measured), 2),
        "median_percent": round(100 * float(np.median(abs(predicted / measured - 1))), 2),
        "acc10_percent": round(accuracy_within(predicted, measured), 1),
    }


def errors_by_module(predicted: Floats, measured: Floats, modules: Sequence[str]) -> dict[str, Any]:
    """Return errors of all networks, the mean over modules, and the errors of each module."""
    names = np.asarray(modules)
    by_module = {
        str(name): {
            "count": int((names == name).sum()),
            "mape_percent": round(mape(predicted[names == name], measured[names == name]), 2),
        }
        for name in np.unique(names)
    }
    return {
        "networks": len(measured),
        **latency_errors(predicted, measured),
        "module_mean_mape_percent": round(float(np.mean([row["mape_percent"] for row in by_module.values()])), 2),
        "by_module": by_module,
    }
