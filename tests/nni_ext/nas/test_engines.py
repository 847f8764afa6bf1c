"""What NNI 3.0 needs help with."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("nni.nas.strategy", reason="needs NNI: pip install 'nas-ext[nni]'")

from nni.nas.execution import ExecutionEngine
from nni.nas.execution.event import FinalMetricEvent, TrainingEndEvent
from nni.nas.space import ExecutableModelSpace, ModelStatus
from nni.nas.strategy.middleware import Filter

from nas_core.space import Architecture
from nni_ext.nas.engines import SubmittedModels, keep_listening


def test_an_engine_that_no_longer_listens() -> None:
    """Its thread has ended, as at a command about an old trial of a resumed experiment."""
    engine, stopped, heard = ExecutionEngine(), threading.Event(), threading.Event()
    ended = threading.Thread(target=lambda: None)
    channel = SimpleNamespace(listen=lambda stop: (heard.set(), stop.wait()))
    names = {"_channel": channel, "_channel_listen_stop_event": stopped, "_channel_listen_thread": ended}
    vars(engine).update(names)
    wrapped = Filter(lambda model: True)
    wrapped.set_engine(engine)
    assert keep_listening(wrapped) and heard.wait(5)
    assert not keep_listening(wrapped)  # it listens
    stopped.set()
    vars(engine)["_channel_listen_thread"].join(5)
    assert not keep_listening(wrapped)  # it received the end


TRAINED, FAILED = ModelStatus.Trained, ModelStatus.Failed


class Heard:
    """Three models named by their numbers, and what is known of them."""

    def __init__(self) -> None:
        self.engine, self.submitted = ExecutionEngine(), SubmittedModels()
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
