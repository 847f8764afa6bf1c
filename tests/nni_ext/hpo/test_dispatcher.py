"""Errors of a tuner are reported to NNI's manager, which would wait for ever otherwise."""

from __future__ import annotations

import pytest

pytest.importorskip("nni", reason="NNI is not installed")

from nni.runtime.msg_dispatcher import MsgDispatcher
from nni.runtime.tuner_command_channel import CommandType

from nas_core.search import InfeasibleError
from nni_ext.hpo.tuner import SearchTuner
from tests.nni_ext.hpo.manager import FILE, evolution, random


class Dispatcher(MsgDispatcher):  # type: ignore[misc]
    """NNI's own, with a list for a manager."""

    def __init__(self, tuner: SearchTuner) -> None:
        super().__init__("ws://_unittest_", tuner)
        self.sent: list[tuple[CommandType, str]] = []

    def send(self, command: CommandType, data: str) -> None:
        self.sent.append((command, data))

    def data_of(self, kind: CommandType) -> list[str]:
        return [data for command, data in self.sent if command is kind]


def test_a_limit_that_nothing_meets() -> None:
    dispatcher = Dispatcher(evolution(max_params_m=0.01))
    with pytest.raises(InfeasibleError):
        dispatcher.process_command(CommandType.Initialize, FILE)
    (error,) = dispatcher.data_of(CommandType.Error)
    assert "closest candidate" in error
    assert "\n" not in error


def test_the_end_of_a_search_is_no_error() -> None:
    dispatcher = Dispatcher(random(evaluations=14))
    dispatcher.process_command(CommandType.Initialize, FILE)
    dispatcher.process_command(CommandType.RequestTrialJobs, 15)
    assert len(dispatcher.data_of(CommandType.NewTrialJob)) == 14
    assert dispatcher.data_of(CommandType.NoMoreTrialJobs)
    assert not dispatcher.data_of(CommandType.Error)
