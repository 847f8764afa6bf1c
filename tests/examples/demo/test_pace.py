"""A busy machine makes the demo slower: how training is timed, planned and told, with a clock of our own."""

import json
import os

import pytest

from examples.demo import pace, pipeline, settings, training
from examples.demo.pace import Pace, Trial
from examples.demo.stages import Runner
from nas_core.errors import DataError


class Clock:
    """Time that passes when it is told to."""

    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


def line(updates, **more):
    values = {"num_updates": str(updates), "loss": "9.1", "wall": "90", **more}
    return f"2026-01-01 00:00:00 | INFO | train_inner | {json.dumps(values)}\n"


def try_out(seconds_each, most=200):
    """Time a training of so many seconds per update; returns the trial and the updates it waited for."""
    clock = Clock()
    trial = Trial(clock)
    clock.now += 60  # however long the start takes
    for updates in range(1, most + 1):
        clock.now += 10 * seconds_each if updates < 3 else seconds_each
        if trial(line(updates)) or trial("something else\n"):
            return trial, updates
    return trial, None


@pytest.mark.parametrize(("seconds_each", "waited"), [(0.01, 27), (0.2, 27), (2.0, 13), (60.0, 7)])
def test_a_trial_waits_for_updates_and_not_for_a_clock(seconds_each, waited):
    trial, updates = try_out(seconds_each)
    assert trial.seconds_per_update == pytest.approx(seconds_each)
    assert updates == waited


def test_a_trial_that_ends_too_early_knows_nothing():
    trial, updates = try_out(1.0, most=3)
    assert updates is None and trial.seconds_per_update is None


def test_a_slow_machine_gets_the_updates_that_networks_need():
    given = settings.parse([])
    enough = settings.ENOUGH_UPDATES
    quick, slow, crawling = (training.plan(given, Pace(seconds, 1)) for seconds in (0.1, 1.2, 30.0))
    assert quick.updates > enough and quick.updates == pytest.approx(230 / 0.108, rel=0.01)
    assert "about 4 minutes (0.10 s each with 1 thread)" in quick.told and "too few" not in quick.told
    assert slow.updates == crawling.updates == enough
    assert "about 22 minutes (1.20 s each with 1 thread); 4 minutes hold 177, too few" in slow.told


def test_numbers_of_the_user_are_kept_and_commented():
    minutes = training.plan(settings.parse(["--minutes", "1"]), Pace(0.5, 2))
    assert minutes.updates == 92 and "0.50 s each with 2 threads" in minutes.told
    assert f"usually {settings.ENOUGH_UPDATES} are needed" in minutes.told
    updates = training.plan(settings.parse(["--updates", "5000"]), Pace(0.5, 2))
    assert updates.updates == 5000 and "about 45 minutes" in updates.told and "usually" not in updates.told


class SlowCommands(pipeline.Pipeline):
    """A pipeline whose commands are only written down; training prints an update every ``seconds_each`` seconds."""

    def __init__(self, given, clock, seconds_each):
        super().__init__(given)
        self.about = {"source": "en", "target": "de"}
        self.calls = []
        self.clock, self.seconds_each = clock, seconds_each
        self.run.command = self.command

    def command(self, argv, watch=None, poll=None, until=None):
        self.calls.append((self.run.threads, [str(word) for word in argv]))
        for updates in range(1, 201):
            self.clock.now += self.seconds_each[self.run.threads]
            if until and until(line(updates)):
                return ""
        self.checkpoint.parent.mkdir(exist_ok=True)
        self.checkpoint.touch()
        return ""


def trained(monkeypatch, tmp_path, seconds_each, *argv):
    clock = Clock()
    monkeypatch.setattr(pipeline, "Trial", lambda: Trial(clock))
    monkeypatch.setattr(pace.os, "sched_getaffinity", lambda pid: {0, 1}, raising=False)
    made = SlowCommands(settings.parse(["--out", str(tmp_path), *argv]), clock, seconds_each)
    made.train()
    return made


def value(argv, option):
    return argv[len(argv) - argv[::-1].index(option)]


def test_training_on_a_busy_machine(monkeypatch, tmp_path, capsys):
    """Two threads wait for each other, and four minutes hold 100 updates: the networks learn nevertheless."""
    made = trained(monkeypatch, tmp_path, {1: 2.2, 2: 9.0})
    assert [threads for threads, _ in made.calls] == [1, 2, 1]
    assert made.run.threads == 1
    training_command = made.calls[-1][1]
    assert value(training_command, "--max-update") == str(settings.ENOUGH_UPDATES)
    assert "--stop-time-hours" not in training_command
    assert "about 40 minutes (2.20 s each with 1 thread); 4 minutes hold 96" in capsys.readouterr().out
    again = trained(monkeypatch, tmp_path, {1: 0.1, 2: 0.1})  # on another day: the same training goes on
    assert again.calls == [] and again.run.threads == 1
    assert "thread(s)" not in capsys.readouterr().out  # nothing was tried
    other = trained(monkeypatch, tmp_path, {4: 0.1}, "--threads", "4")
    assert other.calls == [] and other.run.threads == 4
    told = capsys.readouterr().out
    assert "(2.20 s each with 1 thread when the run was begun, now 4 threads)" in told and "4 thread(s)" not in told


def test_training_for_the_minutes_and_threads_given(monkeypatch, tmp_path):
    made = trained(monkeypatch, tmp_path, {2: 1.0}, "--threads", "2", "--minutes", "3")
    assert [threads for threads, _ in made.calls] == [2, 2]
    assert value(made.calls[-1][1], "--max-update") == str(int(170 / 1.08))


def test_a_trial_without_updates_is_an_error(monkeypatch, tmp_path):
    monkeypatch.setattr(pace, "UNTIMED_UPDATES", 10**6)
    with pytest.raises(DataError, match=r"ended before it could be timed; see .*pace.log"):
        trained(monkeypatch, tmp_path, {1: 1.0, 2: 1.0})


def test_commands_do_not_spin(tmp_path):
    runner = Runner(tmp_path, 1, 1)
    told = runner.command(["bash", "-c", "echo $OMP_WAIT_POLICY $OMP_NUM_THREADS"])
    assert told == "PASSIVE 1\n"
    runner.threads = 2
    assert runner.command(["bash", "-c", "echo $OMP_NUM_THREADS"]) == "2\n"
    assert "OMP_WAIT_POLICY" not in os.environ or os.environ["OMP_WAIT_POLICY"]
