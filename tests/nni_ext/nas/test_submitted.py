"""How models end, in whatever order the engine says it."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("nni.nas.strategy", reason="needs NNI: pip install 'nas-ext[nni]'")

from nni.nas.execution import ExecutionEngine
from nni.nas.execution.event import FinalMetricEvent, TrainingEndEvent
from nni.nas.space import ExecutableModelSpace, ModelStatus

from nas_core.space import Architecture
from nni_ext.nas.submitted import Submitted

TRAINED, FAILED = ModelStatus.Trained, ModelStatus.Failed


class Heard:
    """Three models named by their numbers, and what is known of them."""

    def __init__(self) -> None:
        self.engine, self.submitted = ExecutionEngine(), Submitted()
        self.submitted.listen(self.engine)
        self.models = [ExecutableModelSpace(ModelStatus.Training) for _ in range(3)]
        for number, model in enumerate(self.models):
            self.submitted.add(Architecture({"number": number}), model)

    def metric(self, number: int, value: Any) -> None:
        self.engine.dispatch_model_event(FinalMetricEvent(self.models[number], value))

    def end(self, number: int, status: ModelStatus = TRAINED) -> None:
        self.engine.dispatch_model_event(TrainingEndEvent(self.models[number], status))

    @property
    def results(self) -> list[tuple[Any, Any]]:
        return [(architecture["number"], value) for architecture, value in self.submitted.results()]


def test_in_order() -> None:
    heard = Heard()
    heard.metric(1, 0.5)
    assert heard.results == []
    heard.end(1)
    assert heard.results == [(1, 0.5)] and len(heard.submitted) == 2
    heard.end(1)
    assert heard.results == []


def test_trials_that_took_each_others_parameters() -> None:
    """The trial of model 0 computes model 1 and ends first; nothing has failed."""
    heard = Heard()
    heard.metric(1, 1.0)
    heard.end(0)
    assert heard.results == []
    heard.metric(0, 2.0)
    assert heard.results == [(0, 2.0)]
    heard.end(1)
    assert heard.results == [(1, 1.0)]


def test_failed_when_all_others_have_ended() -> None:
    heard = Heard()
    heard.end(0, FAILED)
    heard.end(1)
    assert heard.results == [] and len(heard.submitted) == 3
    heard.metric(2, 3.0)
    heard.end(2)
    assert heard.results == [(2, 3.0), (0, None), (1, None)]
    assert len(heard.submitted) == 0


def test_alone_it_fails_at_once() -> None:
    heard = Heard()
    for number in (1, 2):
        heard.metric(number, 1.0)
        heard.end(number)
    heard.end(0, FAILED)
    assert heard.results == [(1, 1.0), (2, 1.0), (0, None)]


def test_later_models_are_not_waited_for() -> None:
    heard = Heard()
    heard.end(0, FAILED)
    assert heard.results == []
    heard.submitted.add(Architecture({"number": 3}), ExecutableModelSpace(ModelStatus.Training))
    for number in (1, 2):
        heard.metric(number, 1.0)
        heard.end(number)
    assert sorted(heard.results, key=str) == [(0, None), (1, 1.0), (2, 1.0)]


def test_others_models_interruptions_and_silence() -> None:
    heard = Heard()
    heard.engine.dispatch_model_event(TrainingEndEvent(ExecutableModelSpace(ModelStatus.Training), TRAINED))
    heard.end(0, ModelStatus.Interrupted)
    assert heard.results == [] and len(heard.submitted) == 2
    heard.submitted.listen(heard.engine, on=False)
    heard.metric(1, 1.0)
    heard.end(1)
    assert heard.results == []
    assert not any(heard.engine._callbacks.values())  # private: NNI's
