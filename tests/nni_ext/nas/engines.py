"""A small model space, a formula for its models, and engines, for tests of strategies."""

from __future__ import annotations

import atexit
import contextlib
import functools
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import nni
import pytest
import torch
from nni.nas.evaluator import FunctionalEvaluator
from nni.nas.execution import ExecutionEngine
from nni.nas.execution.event import FinalMetricEvent, TrainingEndEvent
from nni.nas.experiment import NasExperiment, NasExperimentConfig, experiment
from nni.nas.nn.pytorch import LayerChoice, ModelSpace, MutableConv2d, Repeat
from nni.nas.space import ModelStatus, SimplifiedModelSpace
from nni.runtime.log import stop_experiment_logging
from torch import nn

from nni_ext import SearchStrategy

SMALL = {"iterations": 4, "population": 8, "parents": 4}


class Network(ModelSpace):  # type: ignore[misc]
    """144 samples."""

    def __init__(self) -> None:
        super().__init__()
        width = nni.choice("width", [4, 8, 16])
        self.stem = MutableConv2d(3, width, nni.choice("kernel", [1, 3, 5]), padding=2)
        self.blocks = Repeat(
            lambda index: LayerChoice([nn.ReLU(), nn.Identity()], label=f"act{index}"), (1, 2), label="depth"
        )
        self.add_mutable(nni.choice("shape", [(1, 1), (2, 2)]))

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.blocks(self.stem(image))
        return out


class Formula(FunctionalEvaluator):  # type: ignore[misc]
    """A metric of the sample alone; the networks are not built. Keeps what it was asked."""

    def __init__(self, metric: Callable[[dict[str, Any]], Any]) -> None:
        super().__init__(metric)
        self.seen: list[dict[str, Any]] = []

    def _execute(self, model: Any) -> None:
        self.seen.append(dict(model.sample))
        if (metric := self.function(model.sample)) is not None:
            nni.report_final_result(metric)


def wide_and_sharp(sample: dict[str, Any]) -> float:
    """The best of all models is (16, 1, ...)."""
    return (
        sample["width"] / sample["kernel"]
        + 0.1 * sample["depth"]
        + 0.01 * sample["act0"]
        + 0.001 * sum(sample["shape"])
    )


class Workers(ExecutionEngine):  # type: ignore[misc]
    """Like the training service: several models at once, results from another thread, models by weak references."""

    def __init__(self, workers: int, budget: int, fails: Callable[[int], bool] = lambda index: False) -> None:
        super().__init__()
        self.idle, self.budget, self.fails = workers, budget, fails
        self.submitted: list[dict[str, Any]] = []
        self.threads: list[threading.Thread] = []
        self.most = self.busy = 0

    def submit_models(self, *models: Any) -> None:
        for model in models:
            index = len(self.submitted)
            self.submitted.append(dict(model.sample))
            self.idle -= 1
            self.busy += 1
            self.most = max(self.most, self.busy)
            model.status = ModelStatus.Training
            self.threads.append(threading.Thread(target=self._train, args=(weakref.ref(model), index)))
            self.threads[-1].start()

    def _train(self, reference: Any, index: int) -> None:
        time.sleep(0.002 * (3 - index % 4))  # later ones end before earlier ones
        model = reference()
        assert model is not None, "nobody holds the model"
        failed = self.fails(index)
        if not failed:
            self.dispatch_model_event(FinalMetricEvent(model, wide_and_sharp(model.sample)))
        self.busy -= 1
        self.dispatch_model_event(TrainingEndEvent(model, ModelStatus.Failed if failed else ModelStatus.Trained))
        self.idle += 1

    def idle_worker_available(self) -> bool:
        return self.idle > 0

    def budget_available(self) -> bool:
        return len(self.submitted) < self.budget

    def wait_models(self, *models: Any) -> None:
        for thread in self.threads:
            thread.join()

    def list_models(self, status: Any = None) -> Any:
        return []


@contextlib.contextmanager
def experiments_in(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., NasExperiment]]:
    """Sequential experiments whose record stays in a folder; they can be resumed by id."""
    from nni.experiment import experiment as base

    listing = functools.partial(experiment.Experiments, home_dir=str(folder))
    for module in (experiment, base):
        monkeypatch.setattr(module, "Experiments", listing)

    def make(strategy: Any, evaluator: Any, models: int, *, id: str | None = None, failing: bool = False) -> Any:
        config = NasExperimentConfig("sequential", "simplified", "local")
        config.max_trial_number = models
        config.execution_engine.continue_on_failure = failing
        config.experiment_working_directory = str(folder)
        created.append(NasExperiment(Network(), evaluator, strategy, config, id))
        return created[-1]

    created: list[Any] = []
    yield make
    for one in created:  # those that were not stopped
        atexit.unregister(one.stop)
        stop_experiment_logging(one.id)


def keys(strategy: SearchStrategy) -> list[tuple[str, float | None]]:
    return [(one.architecture.key, one.metric) for one in strategy.archive]


def run(strategy: SearchStrategy, engine: Any, model_space: Any = None) -> SearchStrategy:
    strategy(SimplifiedModelSpace.from_model(model_space or Network(), None), engine)
    return strategy
