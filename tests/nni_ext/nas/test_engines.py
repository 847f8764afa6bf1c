"""What NNI 3.0 needs help with."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

pytest.importorskip("nni.nas.strategy", reason="needs NNI: pip install 'nas-ext[nni]'")

from nni.nas.execution import ExecutionEngine, SequentialExecutionEngine
from nni.nas.strategy.middleware import Filter
from nni.runtime.tuner_command_channel import TunerCommandChannel, command_type

from nni_ext.nas.engines import finished_trials, keep_listening


class Channel(TunerCommandChannel):  # type: ignore[misc]
    """Reads commands from a list, as if from NNI's manager."""

    def __init__(self, commands: list[tuple[str, str]]) -> None:
        super().__init__("ws://localhost:1/tuner")
        self.commands, self.heard = commands, []
        self.on_request_trial_jobs(lambda command: self.heard.append(command.count))

    def _receive(self) -> Any:
        if not self.commands:
            time.sleep(0.01)
            return command_type.CommandType.RequestTrialJobs, "0"
        name, data = self.commands.pop(0)
        return getattr(command_type.CommandType, name), data


class Service(ExecutionEngine):  # type: ignore[misc]
    """The threads of the training-service engine."""

    def __init__(self, commands: list[tuple[str, str]]) -> None:
        super().__init__()
        self._channel, self._channel_listen_stop_event = Channel(commands), threading.Event()
        self._channel_listen_thread = threading.Thread(
            target=self._channel.listen, args=(self._channel_listen_stop_event,), daemon=True
        )
        self._channel_listen_thread.start()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_an_engine_that_no_longer_listens() -> None:
    engine = Service([("ImportData", "[]"), ("AddCustomizedTrialJob", "{}"), ("RequestTrialJobs", "2")])
    wrapped = Filter(lambda model: True)
    wrapped.set_engine(engine)
    revived = 0
    for _ in range(500):
        revived += keep_listening(wrapped)
        if 2 in engine._channel.heard:  # private: NNI's
            break
        time.sleep(0.01)
    assert revived == 2 and engine._channel.heard[0] == 2  # private: NNI's
    assert not keep_listening(wrapped)
    engine._channel_listen_stop_event.set()  # private: NNI's
    engine._channel_listen_thread.join(5)  # private: NNI's
    assert not keep_listening(wrapped)  # it was told to end


def test_other_engines_are_left_alone() -> None:
    engine = SequentialExecutionEngine()
    assert not keep_listening(engine)
    assert finished_trials(engine) == []
