"""Experiments that fail at their start end with an error; NNI's manager and nnictl are stand-ins."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("nni", reason="NNI is not installed")

from nni.experiment import launcher, rest
from nni.experiment.experiment import Experiment
from nni.tools.nnictl import nnictl as nni_nnictl

from nni_ext import nnictl

LATE = {"status": "ERROR", "errors": ["tuner_command_channel: Tuner did not connect in 10 seconds."]}
BROKEN = {"status": "ERROR", "errors": ["Dispatcher stream error,\n tuner may have crashed."]}


class Manager:
    """Gives states in turn, the last one again and again, and has trials in that one."""

    def __init__(self, *states: dict[str, Any]) -> None:
        self.states, self.asked, self.terminated = states, 0, False

    def get(self, port: int, api: str, prefix: str | None = None) -> Any:
        assert (port, prefix) == (8080, "web")
        last = self.asked >= len(self.states) - 1
        if api == "/trial-jobs":
            self.asked += 1
            return [{"trialJobId": "a"}] if last else []
        return self.states[min(self.asked, len(self.states) - 1)]

    def terminate(self) -> None:
        self.terminated = True


def run(monkeypatch: pytest.MonkeyPatch, manager: Manager, action: str = "create", foreground: bool = False) -> int:
    def parse_args() -> None:
        launcher.start_experiment(action, "x", None, 8080, False, None, "web", None, [])
        if foreground:
            experiment = Experiment("local")
            experiment.port, experiment.url_prefix = 8080, "web"
            experiment._wait_completion()  # private: NNI's, as its nnictl calls it

    monkeypatch.setattr(rest, "get", manager.get)
    monkeypatch.setattr(launcher, "start_experiment", lambda *arguments: manager)
    monkeypatch.setattr(launcher, "_check_rest_server", lambda *arguments: None)  # restores NNI's own
    monkeypatch.setattr(Experiment, "_wait_completion", lambda self: False)
    monkeypatch.setattr(nni_nnictl, "parse_args", parse_args)
    monkeypatch.setattr(nnictl.time, "sleep", lambda seconds: None)
    monkeypatch.setattr(nnictl.sys, "argv", ["nnictl"])
    return nnictl.main()


@pytest.mark.parametrize(
    ("state", "advice"), [(LATE, "too busy, so start again"), (BROKEN, "tuner may have crashed. (see dispatcher.log")]
)
def test_a_dead_experiment_is_an_error(
    state: dict[str, Any], advice: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    manager = Manager({"status": "RUNNING"}, {"status": "RUNNING"}, state)
    assert run(monkeypatch, manager) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("nni_ext.nnictl: error: the experiment failed: ") and advice in line
    assert manager.terminated


def test_an_experiment_with_trials_has_started(monkeypatch: pytest.MonkeyPatch) -> None:
    manager = Manager({"status": "RUNNING"}, {"status": "RUNNING"})
    assert run(monkeypatch, manager) == 0
    assert manager.asked == 2 and not manager.terminated
    assert run(monkeypatch, Manager(LATE), "view") == 0


def test_one_that_fails_later_in_the_foreground(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, Manager({"status": "RUNNING"}, BROKEN), foreground=True) == 1
    assert "tuner may have crashed" in capsys.readouterr().err


@pytest.mark.parametrize(("unanswered", "code"), [(2, 0), (99, 1)])
def test_a_manager_that_answers_late_is_given_time(
    unanswered: int, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    manager, failures = Manager({"status": "RUNNING"}), iter(range(unanswered))
    get = manager.get

    def late(port: int, api: str, prefix: str | None = None) -> Any:
        if next(failures, None) is not None:
            raise ConnectionError("timed out")
        return get(port, api, prefix)

    monkeypatch.setattr(manager, "get", late)
    assert run(monkeypatch, manager) == code and manager.terminated == bool(code)
    assert ("error: timed out" in capsys.readouterr().err) == bool(code)
