"""Searches as tuners: driven as NNI's dispatcher does, from two threads, resumed, and with results that never come."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nas_core.files.journal import read_jsonl
from nas_core.report.run import read_run
from nas_core.space.labels import architecture_of

nni = pytest.importorskip("nni", reason="NNI is not installed")

from nni_ext.hpo.tuner import SearchTuner  # noqa: E402
from tests.nni_ext.hpo.manager import SPACE, Manager, evolution, quality, random, ranknas  # noqa: E402

tuners = pytest.mark.parametrize("make", [evolution, ranknas, random])


def test_plain_numbers_and_named_metrics_and_maximizing() -> None:
    kinds = {"metric": "top1", "optimize_mode": "maximize"}
    up, down = Manager(evolution(**kinds)), Manager(evolution())
    for number in range(14):
        first, second = up.start(), down.start()
        assert first is not None
        assert first == second
        up.end(number, {"default": 0, "top1": -quality(first)})
        down.end(number, quality(first))
    assert up.run(5) == down.run(5)


@tuners
def test_workers_never_wait_and_threads_do_not_meet(make: Callable[..., SearchTuner]) -> None:
    """Requests and results come in one thread, ends in another, out of order."""
    manager = Manager(make())
    rng = np.random.default_rng(0)
    running: list[int] = []
    ended: list[threading.Thread] = []
    over = False
    while running or not over:
        while len(running) < 4 and not over:
            if manager.start() is None:
                over = True
            else:
                running.append(len(manager.started) - 1)
        if running:
            number = running.pop(int(rng.integers(len(running))))
            value = None if number % 7 == 3 else {"default": quality(manager.started[number])}
            if value is not None:
                manager.tuner.receive_trial_result(number, manager.started[number], value, trial_job_id="x")
            ended.append(threading.Thread(target=manager.tuner.trial_end, args=(number, value is not None)))
            ended[-1].start()
    for thread in ended:
        thread.join()
    created = [json.dumps(one) for one in manager.started.values()]
    assert len(created) == len(set(created)) >= 20


def test_trials_that_end_without_a_result_count_as_failed() -> None:
    manager = Manager(evolution())
    for number in range(14):
        assert manager.start() is not None
        manager.end(number, None if number % 2 else 1.0)
    for number in range(14, 40):  # all of the first generation has results, so that there are no spares for ever
        assert manager.start() is not None
        manager.end(number, 1.0)
    assert manager.search.strategy.generation > 1


def test_lost_results_are_asked_for_once_more() -> None:
    manager = Manager(evolution())
    first = manager.start()
    manager.end(0)
    assert manager.start() == first
    manager.end(1, 1.0)
    second = manager.start()
    assert second != first
    for number in (2, 3):
        manager.end(number)
        assert (manager.start() == second) == (number == 2)


def test_local_trials_that_took_each_others_parameters() -> None:
    """NNI books results by parameters and ends by jobs: the end of a job may come before the result of the parameters
    it was started for."""
    manager = Manager(evolution())
    first, second = manager.start(), manager.start()
    assert first is not None
    assert second is not None
    manager.tuner.receive_trial_result(1, second, 2.0)  # by the job started for 0
    manager.tuner.trial_end(0, True)
    for _ in range(5):
        manager.start()
    manager.tuner.receive_trial_result(0, first, 1.0)
    manager.tuner.trial_end(1, True)
    assert manager.search.strategy.best() == (architecture_of(SPACE, first), 1.0)


@tuners
def test_import_data_continues_the_search(make: Callable[..., SearchTuner]) -> None:
    """As NNI does on resume: a new tuner, the search space, then the finished trials; parameter ids begin anew."""
    full = Manager(make()).run()
    first = Manager(make())
    first.run(13)
    resumed = Manager(make())
    data = [{"parameter": p, "value": {"default": v, "other": 1.0}, "trialJobId": "x"} for p, v in first.results]
    resumed.tuner.import_data(data)
    assert full[:13] + resumed.run() == full


@pytest.mark.parametrize("make", [evolution, ranknas])
def test_the_record_continues_the_search_and_is_a_run(make: Callable[..., SearchTuner], experiment: Path) -> None:
    """Failures, which NNI does not import, are on record too."""

    def run(manager: Manager, most: int) -> list[dict[str, Any]]:
        created = []
        while len(created) < most and (parameters := manager.start()) is not None:
            created.append(parameters)
            failed = round(quality(parameters) * 1000) % 5 == 0
            manager.end(len(manager.started) - 1, None if failed else quality(parameters), not failed)
        return created

    first = run(Manager(make()), 16)
    second = run(Manager(make()), 1000)
    journal = read_jsonl(experiment / "journal.jsonl")
    assert [entry["index"] for entry in journal] == list(range(len(first) + len(second)))
    assert any(entry["metrics"] == {} for entry in journal)
    recorded = read_run(experiment)
    assert recorded.finalists and recorded.metric == "default"
    for path in experiment.iterdir():
        if path.is_file():
            path.unlink()
    assert run(Manager(make()), 1000) == first + second
