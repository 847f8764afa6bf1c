"""Architecture objects as NASLib has them, as far as a predictor looks at them, and its evaluator's way with one."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np

TINY = {"model": "nn-former", "dim": 16, "depth": 1, "epochs": 5, "lr": 1e-3, "precision": "fp32"}


@dataclass
class WithSpec:
    spec: Any

    def get_spec(self):
        return self.spec


@dataclass
class WithOpIndices:
    op_indices: Any

    def get_op_indices(self):
        return self.op_indices


@dataclass
class WithCompact:
    compact: Any

    def get_compact(self):
        return self.compact


def nasbench101(stream):
    """An upper triangular matrix of 7 nodes with dead ones among them, as NASLib samples."""
    while True:
        matrix = np.triu(stream.random((7, 7)) < 0.4, 1).astype(int)
        ways = np.linalg.matrix_power(matrix + np.eye(7, dtype=int), 7)
        if ways[0, 6] and matrix.sum() <= 9:
            break
    inner = stream.choice(["conv3x3-bn-relu", "conv1x1-bn-relu", "maxpool3x3"], 5).tolist()
    return WithSpec({"matrix": matrix, "ops": ["input", *inner, "output"]})


def nasbench201(stream):
    return WithOpIndices(stream.integers(5, size=6).tolist())


def nasbench301(stream):
    cells = []
    for _ in range(2):
        pairs = []
        for state in range(4):
            sources = stream.choice(state + 2, 2, replace=False)
            pairs += [(source, stream.integers(7)) for source in sources]
        cells.append(tuple(pairs))
    return WithCompact(tuple(cells))


def transbench101_micro(stream):
    return WithOpIndices(stream.integers(4, size=6))


def transbench101_macro(stream):
    modules = stream.integers(1, 5, size=stream.integers(4, 7))
    return WithOpIndices(np.append(modules, np.zeros(6 - len(modules), int)))


SAMPLERS = {
    "nasbench101": nasbench101,
    "nasbench201": nasbench201,
    "nasbench301": nasbench301,
    "transbench101_micro": transbench101_micro,
    "transbench101_macro": transbench101_macro,
}


def sampled(space, count, seed=0):
    stream = np.random.default_rng(seed)
    return [SAMPLERS[space](stream) for _ in range(count)]


def driven(predictor, space, train, targets, test):
    """What NASLib's PredictorEvaluator does with a predictor, call by call; its row of results and the predictions."""
    predictor.set_ss_type(space)
    predictor.pre_process()
    required = predictor.get_data_reqs()
    assert not required["unlabeled"] and not required["requires_partial_lc"]
    predictor.pre_compute(train, test, None)
    row = {}
    for size in (len(train) // 2, len(train)):
        infos = [{} for _ in range(size)]
        predictor.get_data_reqs()
        predictor.reset_hyperparams()
        assert not predictor.get_hpo_wrapper()
        error = predictor.fit(train[:size], targets[:size], infos)
        hyperparams = predictor.get_hyperparams()
        predictions = predictor.query(test, [{} for _ in test])
        assert len(predictions.shape) == 1
        row = {"train_error": error, "train_size": size, "full_testpred": list(predictions)}
        row |= {"hp_" + name: value for name, value in hyperparams.items()}
    shown = ", ".join(f"{k}: {np.round(v, 4)}" for k, v in row.items() if type(v) not in [str, set, bool])
    assert "full_testpred" in shown
    json.dumps(row)
    return row, predictions
