"""Errors of a tuner are told to NNI's manager, which would wait for ever otherwise."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("nni", reason="NNI is not installed")

from nni.runtime.msg_dispatcher import MsgDispatcher
from nni.runtime.tuner_command_channel import CommandType

from nas_core.errors import NasExtError
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

    def told(self, kind: CommandType) -> list[str]:
        return [data for command, data in self.sent if command is kind]


def test_a_limit_that_nothing_meets() -> None:
    dispatcher = Dispatcher(evolution(max_params_m=0.01))
    with pytest.raises(InfeasibleError):
        dispatcher.process_command(CommandType.Initialize, FILE)
    (error,) = dispatcher.told(CommandType.Error)
    assert "closest candidate" in error
    assert "\n" not in error


@pytest.mark.parametrize("success", [True, False])
def test_a_record_that_cannot_be_written(experiment: Path, success: bool) -> None:
    dispatcher = Dispatcher(evolution())
    dispatcher.process_command(CommandType.Initialize, FILE)
    dispatcher.process_command(CommandType.RequestTrialJobs, 1)
    (trial,) = map(json.loads, dispatcher.told(CommandType.NewTrialJob))
    (experiment / "journal.jsonl").mkdir()
    result = {"parameter_id": trial["parameter_id"], "trial_job_id": "x", "type": "FINAL", "sequence": 0, "value": "1"}
    end = {"trial_job_id": "x", "event": "FAILED", "hyper_params": json.dumps(trial)}
    with pytest.raises(NasExtError, match=r"^cannot write "):
        if success:
            dispatcher.process_command(CommandType.ReportMetricData, result)
        else:
            dispatcher.process_command(CommandType.TrialEnd, end)
    (error,) = dispatcher.told(CommandType.Error)
    assert error.startswith("cannot write ")


def test_the_end_of_a_search_is_no_error() -> None:
    dispatcher = Dispatcher(random(evaluations=14))
    dispatcher.process_command(CommandType.Initialize, FILE)
    dispatcher.process_command(CommandType.RequestTrialJobs, 15)
    assert len(dispatcher.told(CommandType.NewTrialJob)) == 14
    assert dispatcher.told(CommandType.NoMoreTrialJobs)
    assert not dispatcher.told(CommandType.Error)
