"""Bad input: each call raises its error, in one line that names the value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from nas_core.errors import ConfigError, DataError, UnknownChoiceError
from nas_core.graph import Graph, GraphError, Graphs
from nas_core.graph.nasbench201 import nasbench201_graphs
from nas_core.predictor import (
    NNFormer,
    NNFormerConfig,
    NNFormerPredictor,
    PriorPredictor,
    StatisticsPredictor,
    kendall_tau,
    reader_for,
)
from nas_core.predictor.base import parsed_accuracy_settings
from nas_core.predictor.files import holdout_split
from nas_core.predictor.metrics import accuracy_within, mape
from nas_core.predictor.nn_former.batch import Batch
from nas_core.predictor.nn_former.model import LogReadout
from nas_core.predictor.nn_former.packed import PackedBatch
from nas_core.predictor.recipes import get_recipe
from nas_core.predictor.statistics.features import Vocabulary, graph_statistics
from nas_core.predictor.statistics.operation_features import operation_features
from tests.contracts.strategy import SPACE
from tests.predictor.graphs import random_graphs

GRAPHS, FEATURED = random_graphs((5, 6, 7) * 4), random_graphs((5, 6, 7) * 4, features=True)
TARGETS = np.linspace(0, 1, 12)
SMALL: dict[str, Any] = {"dim": 16, "depth": 1, "epochs": 1}
ROWS = SPACE.sample_rows(np.random.default_rng(0), 4)
CELLS = nasbench201_graphs(np.random.default_rng(0).integers(0, 5, (4, 6)))
MODEL = NNFormer(NNFormerConfig(operations=5, max_nodes=8, dim=16, depth=1))
LATENCY, READOUT = NNFormer(NNFormerConfig.latency(dim=16)), LogReadout(8, 2)
Case = tuple[Callable[[], Any], type[Exception], str]


def paper(**changes: Any) -> NNFormerPredictor:
    return NNFormerPredictor("paper", **{**SMALL, **changes})


METRICS: list[Case] = [
    *((lambda metric=metric: metric([1, 2], [1, 2, 3]), DataError, "(3,)") for metric in (kendall_tau, mape)),
    (lambda: kendall_tau([], []), DataError, "(0,)"),
    (lambda: accuracy_within([1, np.nan], [1, 2]), DataError, "prediction 1 is nan"),
    (lambda: mape([1, 2], [np.inf, 2]), DataError, "target 0 is inf"),
    (lambda: mape([1, 2], [1, 0]), DataError, "target 1 is 0"),
]
SETTINGS: list[Case] = [
    *(
        (lambda name=name, value=value: paper(**{name: value}), ConfigError, f"{name} of ")
        for name, value in (
            ("members", 0),
            ("members", "two"),
            ("adapts", "no"),
            ("dim", "32"),
            ("dropout", float("nan")),
            ("bias", 1),
            ("lr", float("inf")),
        )
    ),
    (lambda: paper(widht=3), ConfigError, "widht"),
    (lambda: paper(unseen="maybe"), UnknownChoiceError, "maybe"),
    (lambda: paper(targets="log"), UnknownChoiceError, "log"),
    (lambda: NNFormerPredictor("papper"), UnknownChoiceError, "papper"),
    (lambda: StatisticsPredictor(trees=2.5), ConfigError, "2.5"),
    (lambda: StatisticsPredictor(targets="log"), UnknownChoiceError, "log"),
    (lambda: get_recipe("network-latency").with_changes(loss="mse"), ConfigError, "mse"),
    (lambda: get_recipe("network-latency").with_changes(consistency_weight=0.5), ConfigError, "0.5"),
    (lambda: reader_for("nasbench202"), UnknownChoiceError, "nasbench202"),
    (lambda: StatisticsPredictor(processes=0, trees=0), ConfigError, "processes 0, trees 0"),
    (lambda: parsed_accuracy_settings("additive", ["epochs=3"]), UnknownChoiceError, "epochs"),
    (lambda: parsed_accuracy_settings("aditive", []), UnknownChoiceError, "aditive"),
]
FITS: list[Case] = [
    (lambda: paper().fit(GRAPHS, TARGETS[:-1]), DataError, "(11,)"),
    (lambda: paper().fit(GRAPHS, TARGETS * np.nan), DataError, "nan"),
    (lambda: paper().fit(GRAPHS[:1], TARGETS[:1]), DataError, "1 graph"),
    (lambda: paper().fit(GRAPHS, 90 + TARGETS), DataError, "90"),
    (lambda: NNFormerPredictor("latency", **SMALL).fit(GRAPHS, TARGETS - 5), DataError, "-5"),
    (lambda: paper(epochs=20, lr=1e38, warmup=0.0).fit(GRAPHS, TARGETS), ConfigError, "1e+38"),
    (lambda: NNFormerPredictor("network-latency", **SMALL).fit(GRAPHS, TARGETS + 1), GraphError, "none costs"),
    (lambda: PriorPredictor().fit(GRAPHS, TARGETS), GraphError, "no descriptions of their operations"),
    (lambda: PriorPredictor().predict(GRAPHS), GraphError, "no descriptions of their operations"),
    (lambda: PriorPredictor().predict_with_std(CELLS), ConfigError, "prior"),
    (lambda: PriorPredictor().save("never.safetensors"), ConfigError, "not fitted"),
    (lambda: StatisticsPredictor().predict_components(GRAPHS), ConfigError, "not fitted"),
]
DATA: list[Case] = [
    (lambda: MODEL(Batch.of(Graphs.of([Graph([0, 5], [(0, 1)])]))), GraphError, "operation index 5"),
    (lambda: MODEL(Batch.of(random_graphs((9,)))), GraphError, "9 nodes"),
    (lambda: MODEL(PackedBatch.of(random_graphs((3,)))), GraphError, "packed"),
    (lambda: LATENCY(Batch.of(GRAPHS)), GraphError, "attributes"),
    (lambda: READOUT.set_scale(FEATURED, torch.ones(12)), GraphError, "4 static"),
    (lambda: graph_statistics(Graphs.of([Graph([0, 4], [(0, 1)])]), 4), GraphError, "operation index 4"),
    (lambda: graph_statistics(Graphs.of([Graph([0, 1], [(1, 0)])]), 4), GraphError, "topological"),
    (lambda: operation_features(GRAPHS), GraphError, "no descriptions of their operations"),
    (lambda: Vocabulary.of(FEATURED).describe(GRAPHS), GraphError, "8 attributes"),
    (lambda: Vocabulary.of(GRAPHS).describe(replace(FEATURED, costs=None)), GraphError, "4 static"),
    *(
        (lambda share=share: holdout_split(GRAPHS, share, 0), ConfigError, str(share))
        for share in (-0.1, 1.0, float("nan"))
    ),
    (lambda: holdout_split(GRAPHS.take([0] * 9), 0.3, 0), DataError, "9 graphs, 1 of them different"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "value"), [*METRICS, *SETTINGS, *FITS, *DATA])
def test_an_error_is_one_line_with_the_value(call: Callable[[], Any], error: type[Exception], value: str) -> None:
    state = torch.get_rng_state()
    with pytest.raises(error) as caught:
        call()
    assert value in str(caught.value) and "\n" not in str(caught.value)
    assert torch.equal(torch.get_rng_state(), state), "the caller's random stream"
