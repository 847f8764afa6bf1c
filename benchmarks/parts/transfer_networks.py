"""NN-Former for latency on a held-out device, from scratch or pretrained on the other devices."""

from __future__ import annotations

import functools
from dataclasses import asdict
from typing import Any

import numpy as np
import torch

from benchmarks.parts.published import LatencyTable
from benchmarks.parts.transfer import Array, Case
from nas_core.graph import Graphs
from nas_core.predictor import NNFormer, NNFormerConfig, StatisticsPredictor
from nas_core.predictor.nn_former.scorer import Scorer
from nas_core.predictor.training import TrainConfig, Trainer

STATISTICS: dict[str, Any] = {"targets": "mean", "processes": 1, "trees": 0}
"""Settings of the statistics."""
PRETRAINED_ON, PRETRAIN_EPOCHS = 2000, 8
LR, FINETUNING_LR = 3e-3, 1e-3


def statistics(case: Case) -> Array:
    """Predict by a Gaussian process on graph statistics, from scratch; layer indices are ignored."""
    graphs = case.table.graphs
    predictor = StatisticsPredictor(seed=case.draw, **STATISTICS)
    predictor.fit(graphs.take(case.train), case.latency_ms[case.train])
    return predictor.predict(graphs.take(case.test))


def network(case: Case) -> Array:
    """Predict by a small NN-Former from scratch, trained twice as long as :func:`finetuned`."""
    return _train_and_predict(_new_model(case.table, case.draw), case, 2 * finetuning_epochs(case.size), LR)


def finetuned(case: Case) -> Array:
    """Predict by the same network, pretrained on the sources and then fine-tuned."""
    model = _new_model(case.table, case.draw)
    model.load_state_dict(pretrain(case.table, case.device, case.draw).state_dict())
    return _train_and_predict(model, case, finetuning_epochs(case.size), FINETUNING_LR)


@functools.lru_cache(maxsize=1)
def pretrain(table: LatencyTable, device: str, draw: int) -> NNFormer:
    """Return a network trained on the mean of the sources for :data:`PRETRAINED_ON` networks.

    The target is the geometric mean of the sources' milliseconds, each divided by its mean.
    """
    sources = table.latency_ms[:, Case(table, device, 0, draw).sources]
    mean_targets = np.exp(np.log(sources / sources.mean(0)).mean(1))
    rows = np.random.default_rng([draw, 24]).permutation(len(mean_targets))[:PRETRAINED_ON]
    config = _train_config(PRETRAIN_EPOCHS, LR, 32, draw)
    return _train(_new_model(table, draw), table.graphs.take(rows), mean_targets[rows], config)


def finetuning_epochs(size: int) -> int:
    return 40 if size <= 100 else 15


def network_settings(size: int) -> dict[str, Any]:
    training = asdict(_train_config(PRETRAIN_EPOCHS, LR, _batch_size(size), 0))
    pretraining = [PRETRAINED_ON, finetuning_epochs(size), FINETUNING_LR]
    return {"training": training, "more": pretraining, "model": asdict(_model_config(9, 1))}


def _model_config(operations: int, attributes: int) -> NNFormerConfig:
    return NNFormerConfig.latency(
        operations=operations, attributes=attributes, shapes=0, static=0, dim=64, layer_scale=0.1
    )


def _new_model(table: LatencyTable, draw: int) -> NNFormer:
    torch.manual_seed(draw)
    attributes = 0 if table.graphs.attributes is None else table.graphs.attributes.shape[1]
    return NNFormer(_model_config(int(table.graphs.ops.max()) + 1, attributes))


def _batch_size(size: int) -> int:
    return min(32, max(4, size // 8))


def _train_config(epochs: int, lr: float, batch: int, seed: int) -> TrainConfig:
    return TrainConfig(
        epochs=epochs, batch_size=batch, copies=1, lr=lr, final_lr=0.0, loss="log", rank_weight=0.0,
        consistency_weight=0.0, clip=10.0, equal_sizes=False, precision="fp32", seed=seed,
    )  # fmt: skip


def _train_and_predict(model: NNFormer, case: Case, epochs: int, lr: float) -> Array:
    """Predict the test networks after training, with targets divided by the median."""
    train_ms, graphs = case.latency_ms[case.train], case.table.graphs
    median_ms = float(np.median(train_ms))
    config = _train_config(epochs, lr, _batch_size(case.size), case.draw)
    trained = _train(model, graphs.take(case.train), train_ms / median_ms, config)
    return median_ms * Scorer(trained, "fp32")(graphs.take(case.test))


def _train(model: NNFormer, graphs: Graphs, targets: Array, config: TrainConfig) -> NNFormer:
    trainer = Trainer(model, graphs, targets, config)
    for _ in trainer.steps():
        pass
    trainer.settle()
    return model.eval()
