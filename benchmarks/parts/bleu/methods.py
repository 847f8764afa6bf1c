"""Estimators of BLEU from a few trained networks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.parts.bleu.networks import SUPERNETS, Array, Indices, TranslationTask
from nas_core.predictor import ACCURACY_MODELS
from nas_core.search.calibration.model import Calibration

Estimate = tuple[Array, Array | None]
"""Estimates of all networks of a task, and standard deviations if available"""
Method = Callable[[TranslationTask, Indices], Estimate]

PENALTY = 3.0
"""Penalty of the plain ridge regressions, in standardised units; not tuned, as in the published comparison"""
EPOCHS = 50
"""Number of epochs of NN-Former, half of its recipe's"""


def affine(values: Array, targets: Array, trained: Indices) -> Array:
    """Fit a straight line through one input."""
    slope, offset = np.polyfit(values[trained], targets[trained], 1)
    return np.asarray(slope * values + offset)


def plain_ridge(columns: Array, targets: Array, trained: Indices) -> Array:
    """Fit a ridge regression with a fixed penalty on standardised columns."""
    mean, deviation = columns[trained].mean(0), columns[trained].std(0)
    standardized = (columns - mean) / np.where(deviation > 0, deviation, 1.0)
    rows = standardized[trained]
    weights = np.linalg.solve(
        rows.T @ rows + PENALTY * np.eye(rows.shape[1]),
        rows.T @ (targets[trained] - targets[trained].mean()),
    )
    return np.asarray(targets[trained].mean() + standardized @ weights)


def size_columns(task: TranslationTask) -> Array:
    """Return widths, decoder layers, and sums over layers of feed-forward widths and heads ``(N, 8)``."""
    sums = ("encoder.ffn_dim", "decoder.ffn_dim", "encoder.self_heads", "decoder.self_heads", "decoder.cross_heads")
    widths = ("encoder.embed_dim", "decoder.embed_dim", "decoder.layers")
    return np.array(
        [
            [*(architecture.number(name) for name in widths), *(sum(architecture.numbers(name)) for name in sums)]
            for architecture in task.architectures
        ],
        np.float64,
    )


def supernet_estimate(name: str) -> Method:
    """Return an estimator by a straight line through the validation BLEU of one supernet.

    Without trained networks, it is the supernet's test BLEU, as in published comparisons.
    """
    column = SUPERNETS.index(name)

    def method(task: TranslationTask, trained: Indices) -> Estimate:
        if not len(trained):
            return task.inherited_test[:, column], None
        return affine(task.inherited[:, column], task.bleu, trained), None

    return method


def parameters(task: TranslationTask, trained: Indices) -> Estimate:
    return (affine(task.params_m, task.bleu, trained) if len(trained) else task.params_m), None


def ridge_on_sizes(task: TranslationTask, trained: Indices) -> Estimate:
    return plain_ridge(size_columns(task), task.bleu, trained), None


def ridge_on_both(task: TranslationTask, trained: Indices) -> Estimate:
    return plain_ridge(np.hstack([size_columns(task), task.inherited]), task.bleu, trained), None


def ridge_cross_validated(task: TranslationTask, trained: Indices) -> Estimate:
    """Fit a ridge regression on all inputs and logarithms of sizes, with a penalty by leave-one-out."""
    sizes = np.column_stack([size_columns(task), task.params_m])
    columns = np.hstack([sizes, np.log(sizes), task.inherited])
    model = make_pipeline(StandardScaler(), RidgeCV(np.logspace(-1, 3, 25)))
    model.fit(columns[trained], task.bleu[trained])
    return np.asarray(model.predict(columns)), None


def calibration(supernets: tuple[str, ...] = SUPERNETS, part: str | None = None) -> Method:
    """Return a calibration of some supernets' BLEU, or one of its linear models."""
    columns = [SUPERNETS.index(name) for name in supernets]

    def method(task: TranslationTask, trained: Indices) -> Estimate:
        inherited, networks = task.inherited[:, columns], task.architectures
        model = Calibration(task.space, "test_bleu", inherited_metric="bleu").fit(
            [networks[index] for index in trained], inherited[trained], task.bleu[trained]
        )
        if part is not None:
            return model.predict_components(networks, inherited)[part], None
        return model.predict_with_std(networks, inherited)

    return method


def graph_predictor(model: str, **settings: Any) -> Method:
    """Return a predictor on graphs, without a supernet."""

    def method(task: TranslationTask, trained: Indices) -> Estimate:
        predictor = ACCURACY_MODELS.get(model)(seed=0, unseen="ignore", targets="mean", **settings)
        predictor.fit(task.graphs.take(trained), task.bleu[trained])
        return predictor.predict(task.graphs), None

    return method


METHODS: dict[str, Method] = {
    **{name: supernet_estimate(name) for name in SUPERNETS},
    "parameters": parameters,
    "ridge_sizes": ridge_on_sizes,
    "ridge_both": ridge_on_both,
    "ridge_cross_validated": ridge_cross_validated,
    "statistics": graph_predictor("statistics"),
    "nn_former": graph_predictor("nn-former", recipe="ensemble", members=1, epochs=EPOCHS),
    "calibration": calibration(),
    **{f"calibration_{name}": calibration((name,)) for name in SUPERNETS},
    **{f"part_{name}": calibration(part=name) for name in ("inherited", "sizes")},
}
UNTRAINED_METHODS = (*SUPERNETS, "parameters")
"""Methods that need no trained network"""
SLOW = ("statistics", "nn_former")
"""Methods that take seconds, evaluated on fewer draws"""
