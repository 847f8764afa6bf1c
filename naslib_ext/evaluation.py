"""Evaluation of accuracy predictors by NASLib's ``PredictorEvaluator``."""

from __future__ import annotations

import contextlib
import io
import random
import time
from typing import Any

import numpy as np
import torch

from nas_core.errors import NasExtError, unknown_choice
from nas_core.predictor import ACCURACY_MODELS
from naslib_ext.compat import load
from naslib_ext.plugin import NASLIB_NAMES
from naslib_ext.predictor import AccuracyPredictor

OURS = "nnformer"
KEPT = ("kendalltau", "spearman", "pearson", "mae", "rmse", "precision_10", "precision_20", "train_size")
SINGLE_QUERIES = 20


class Settings(dict[str, Any]):
    """Configuration for NASLib: a dictionary whose entries are attributes too."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


def make_predictor(name: str, space: str, **settings: Any) -> Any:
    """Create an accuracy model of this project or a predictor of NASLib, by name.

    Args:
        space: NASLib's name of the search space.
        settings: settings of ``nnformer``; ignored for others.
    """
    if name == OURS:
        return AccuracyPredictor(space, **settings)
    if name in ACCURACY_MODELS.names():
        return AccuracyPredictor(space, model=name)
    if name not in NASLIB_NAMES:
        raise unknown_choice("predictor", name, [OURS, *ACCURACY_MODELS.names(), *sorted(NASLIB_NAMES)])
    (module,) = load("naslib.predictors.ensemble")
    if name == "bananas":  # an ensemble of three in NASLib's runner
        return module.Ensemble(predictor_type=name, num_ensemble=3, ss_type=space)
    return module.Ensemble(predictor_type=name, num_ensemble=1, ss_type=space).get_ensemble()[0]


def evaluate(
    predictor: Any,
    space: Any,
    api: dict[str, Any],
    *,
    train_sizes: list[int],
    test_size: int,
    seed: int,
    dataset: str = "cifar10",
    hpo_seconds: int = 0,
) -> list[dict[str, Any]]:
    """Fit a predictor on random architectures and compare its predictions with tabulated validation accuracies.

    Equal seeds give all predictors the same architectures.

    Args:
        api: NASLib's ``dataset_api``.
        seed: seed of the global generators of Python, numpy and torch.
        hpo_seconds: NASLib's ``max_hpo_time``.

    Returns:
        For each training size NASLib's metrics, ``fit_s``, ``query_ms`` (per architecture, queried at once) and
        ``one_query_ms`` (median of single queries).
    """
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    several = len(train_sizes) > 1
    settings = Settings(
        experiment_type="vary_train_size" if several else "single",
        train_size_single=train_sizes[-1],
        train_size_list=train_sizes,
        test_size=test_size,
        fidelity_single=-1,
        fidelity_list=[-1],
        max_hpo_time=hpo_seconds,
        uniform_random=1,
        dataset=dataset,
    )
    (module,) = load("naslib.defaults.predictor_evaluator")
    evaluator = module.PredictorEvaluator(predictor, config=settings)
    evaluator._log_to_json = lambda: None  # it cannot write float32, which some of NASLib's predictors give
    labelled = space.get_type() == "nasbench301"
    with contextlib.redirect_stdout(io.StringIO()):  # it prints all targets and predictions
        evaluator.adapt_search_space(space, load_labeled=labelled, dataset_api=api)
        _, *results = evaluator.evaluate()
        one_query_ms = _one_by_one(evaluator, labelled, api)
    if any("mae" not in row or not np.isfinite(row["mae"]) for row in results):
        raise NasExtError(
            "NASLib's evaluator returned NaN metrics and hid the exception; check that the predictor returns a finite"
            " number for each architecture"
        )
    return [
        {
            **{name: _number(row[name]) for name in KEPT},
            "fit_s": round(row["fit_time"], 3),
            "query_ms": round(1e3 * row["query_time"], 4),
            "one_query_ms": round(one_query_ms, 4),
        }
        for row in results
    ]


def _one_by_one(evaluator: Any, labelled: bool, api: dict[str, Any]) -> float:
    took = []
    for _ in range(SINGLE_QUERIES):
        architecture = evaluator.search_space.clone()
        if labelled:
            architecture.load_labeled_architecture(dataset_api=api)
        else:
            architecture.sample_random_architecture(dataset_api=api)
        begin = time.perf_counter()
        evaluator.predictor.query([architecture], [{}])
        took.append(time.perf_counter() - begin)
    return 1e3 * float(np.median(took))


def _number(value: Any) -> float | int | None:
    plain = value.item() if isinstance(value, np.generic) else value
    return plain if np.isfinite(plain) else None
