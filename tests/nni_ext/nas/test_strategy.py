"""What all strategies share: engines, failures, limits, wrong use."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("nni.nas.strategy", reason="needs NNI: pip install 'nas-ext[nni]'")

import nni
from nni.experiment.data import TrialJob
from nni.nas.profiler.pytorch.flops import FlopsProfiler, NumParamsProfiler
from nni.nas.space import SimplifiedModelSpace
from nni.nas.strategy.middleware import Chain, Filter

from nas_core.errors import ConfigError
from nas_core.search import InfeasibleError
from nni_ext import SearchStrategy
from nni_ext.nas.limits import ProfilerLimit
from tests.nni_ext.nas.engines import SMALL, Formula, Network, Workers, experiments_in, keys, run, wide_and_sharp


@pytest.fixture
def experiments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    with experiments_in(tmp_path, monkeypatch) as make:
        yield make


# -- engines ----------------------------------------------------------------------------------------------------------


def test_sequential_engine(experiments: Any) -> None:
    strategy, evaluator = SearchStrategy("evolution", **SMALL, seed=3), Formula(wide_and_sharp)
    made = experiments(strategy, evaluator, 100)
    made.run()
    made.stop()
    assert evaluator.seen == [dict(one.sample) for one in strategy.archive]
    assert 8 < len(strategy.archive) <= strategy.search.budget
    assert all(one.metric == wide_and_sharp(one.sample) for one in strategy.archive)
    best = strategy.best()
    assert best.metric == max(one.metric for one in strategy.archive)
    assert made.export_top_models(1, formatter="dict")[0] == best.sample
    assert type(best.sample["shape"]) is tuple


def test_smaller_metrics_can_be_better() -> None:
    up, down = (run(SearchStrategy("random", evaluations=20, maximize=up), Workers(1, 99)) for up in (True, False))
    assert keys(up) == keys(down)
    assert up.best().metric == max(one.metric for one in up.archive)
    assert down.best().metric == min(one.metric for one in down.archive)


@pytest.mark.parametrize("workers", [1, 3])
def test_several_workers_and_threads(workers: int) -> None:
    engine = Workers(workers, 100)
    strategy = run(SearchStrategy("evolution", **SMALL, seed=3), engine)
    assert engine.most == workers and strategy.search.finished
    assert sorted(keys(strategy)) == sorted(keys(run(SearchStrategy("evolution", **SMALL, seed=3), Workers(2, 100))))


@pytest.mark.parametrize("fails", [lambda index: index % 3 == 0, lambda index: index < 9, lambda index: True])
def test_failing_models_are_survived(fails: Callable[[int], bool]) -> None:
    engine = Workers(2, 100, fails)
    strategy = run(SearchStrategy("evolution", **SMALL), engine)
    assert strategy.search.finished
    failed = [fails(index) for index in range(len(engine.submitted))]
    assert sum(one.metric is None for one in strategy.archive) == sum(failed)
    assert (strategy.best() is None) == all(failed)


def test_invalid_models_of_a_filter(experiments: Any) -> None:
    strategy = SearchStrategy("evolution", **SMALL)
    chain = Chain(strategy, Filter(lambda model: model.sample["width"] < 16))
    experiments(chain, Formula(wide_and_sharp), 100).run()
    assert {one.sample["width"] for one in strategy.archive if one.metric is None} == {16}
    assert max(one.sample["width"] for one in strategy.archive if one.metric is not None) == 8


# -- limits -----------------------------------------------------------------------------------------------------------


def test_models_over_a_limit_are_never_evaluated() -> None:
    space, image = Network(), torch.randn(1, 3, 8, 8)
    flops, params = FlopsProfiler(space, image), NumParamsProfiler(space, image)
    limits = [ProfilerLimit("flops", flops, 40_000.0), ProfilerLimit("params", params, 500)]
    strategy = run(SearchStrategy("evolution", constraints=limits, **SMALL), Workers(2, 100), space)
    assert len(strategy.archive) >= 8
    for one in strategy.archive:
        assert one.costs == {"flops": flops.profile(one.sample), "params": params.profile(one.sample)}
        assert one.costs["flops"] <= 40_000 and one.costs["params"] <= 500


def test_no_model_within_the_limits_ends_at_once(experiments: Any) -> None:
    params = NumParamsProfiler(Network(), torch.randn(1, 3, 8, 8))
    strategy, evaluator = SearchStrategy("evolution", constraints={"params": (params, 3)}), Formula(wide_and_sharp)
    with pytest.raises(InfeasibleError, match=r"params<=3: 0 of \d+ tried .acceptance rate 0.00%.*params 16;.*closest"):
        experiments(strategy, evaluator, 10).run()
    assert not evaluator.seen


# -- wrong use --------------------------------------------------------------------------------------------------------


def interrupted(after: int) -> Callable[[dict[str, Any]], float]:
    """As by Ctrl-C in the middle of a model."""
    calls = iter(range(100))

    def metric(sample: dict[str, Any]) -> float:
        if next(calls) == after:
            raise KeyboardInterrupt
        return wide_and_sharp(sample)

    return metric


@pytest.mark.parametrize("after", [3, 11])
def test_resumed_as_if_never_stopped(experiments: Any, after: int) -> None:
    whole = SearchStrategy("evolution", **SMALL, seed=1)
    experiments(whole, Formula(wide_and_sharp), 100).run()
    first = experiments(SearchStrategy("evolution", **SMALL, seed=1), Formula(interrupted(after)), 100)
    first.run()
    assert len(first.strategy.archive) == after
    evaluator, strategy = Formula(wide_and_sharp), SearchStrategy("evolution", **SMALL, seed=1)
    second = experiments(strategy, evaluator, 100, id=first.id)
    second.resume()
    second.stop()
    assert keys(strategy) == keys(whole)
    assert strategy.best() == whole.best()
    assert len(evaluator.seen) == len(whole.archive) - after
    state = torch.load(checkpoint(second), weights_only=True)
    assert len(state["strategy"]["archive"]) == len(whole.archive)


def checkpoint(made: Any) -> Path:
    return Path(made._checkpoint_directory) / "state.ckpt.torch"  # private: NNI's


def test_a_checkpoint_survives_a_failed_resume(
    experiments: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    first = experiments(SearchStrategy("evolution", **SMALL, seed=1), Formula(interrupted(9)), 100)
    first.run()
    good = torch.load(checkpoint(first), weights_only=True)["strategy"]
    assert len(good["archive"]) == 9

    def stopped_after(strategy: Any, error: type[Exception], said: str) -> None:
        made = experiments(strategy, Formula(wide_and_sharp), 100, id=first.id)
        with pytest.raises(error, match=said):
            made.resume()
        made.stop()
        assert torch.load(checkpoint(made), weights_only=True)["strategy"] == good

    stopped_after(SearchStrategy("evolution", **SMALL, seed=2), ConfigError, "seed = 1, now it is 2")
    stopped_after(SearchStrategy("evolution", **SMALL, seed=1, maximize=False), ConfigError, "maximize=True")
    stopped_after(SearchStrategy("random"), ConfigError, "strategy = 'evolution'")
    with monkeypatch.context() as patch, caplog.at_level(logging.ERROR):  # of the file, before any strategy sees it
        patch.setattr(torch, "load", lambda *args, **kwargs: 1 / 0)
        made = experiments(SearchStrategy("evolution", **SMALL, seed=1), Formula(wide_and_sharp), 100, id=first.id)
        with pytest.raises(ZeroDivisionError):
            made.resume()
        before = checkpoint(made).read_bytes()
        made.stop()
        assert checkpoint(made).read_bytes() == before
    last = experiments(SearchStrategy("evolution", **SMALL, seed=1), Formula(wide_and_sharp), 100, id=first.id)
    last.resume()
    assert [entry["metric"] for entry in good["archive"]] == [one.metric for one in last.strategy.archive[:9]]


def test_states_that_are_none() -> None:
    strategy = SearchStrategy("evolution", **SMALL)
    strategy.initialize(SimplifiedModelSpace.from_model(Network(), None), Workers(1, 9))
    good = strategy.state_dict()
    for wrong in ({}, {"format": 1}, {**good, "version": 99}, {**good, "archive": [{}]}, {**good, "search": None}):
        with pytest.raises(ConfigError) as caught:
            strategy.load_state_dict(wrong)
        assert "\n" not in str(caught.value)
        assert strategy.state_dict() == wrong
    with pytest.raises(ConfigError, match="could not be loaded"):
        strategy.run()


def test_a_record_outlives_a_killed_process(tmp_path: Path) -> None:
    whole = run(SearchStrategy("evolution", **SMALL, seed=1), Workers(1, 100))
    for budget in (3, 3, 5, 100):  # the experiment is begun anew each time, without NNI's checkpoint
        strategy = run(SearchStrategy("evolution", **SMALL, seed=1, record=tmp_path), engine := Workers(1, budget))
    assert keys(strategy) == keys(whole)
    assert len(engine.submitted) == len(whole.archive) - 11
    assert len((tmp_path / "journal.jsonl").read_text().splitlines()) == len(whole.archive)
    with pytest.raises(ConfigError, match="seed"):
        run(SearchStrategy("evolution", **SMALL, seed=2, record=tmp_path), Workers(1, 100))


class Manager:
    """Of a training service: its trials, of which each two that started together took each other's parameters."""

    def __init__(self, models: list[Any], metrics: list[float]) -> None:
        self.trials = [self._trial(index, index ^ 1, models[index], metrics[index ^ 1]) for index in range(len(models))]

    def _trial(self, listed: int, evaluated: int, model: Any, metric: float) -> TrialJob:
        given = {"parameter_id": listed, "parameter_source": "algorithm", "parameters": model, "parameter_index": 0}
        final = {"timestamp": 0, "trialJobId": str(listed), "parameterId": str(evaluated), "type": "FINAL",
                 "sequence": 0, "data": json.dumps(json.dumps(metric))}  # fmt: skip
        return TrialJob(str(listed), "SUCCEEDED", 0, listed, hyperParameters=[nni.dump(given)], finalMetricData=[final])

    def list_trial_jobs(self) -> list[TrialJob]:
        return self.trials


def test_what_a_training_service_finished_meanwhile() -> None:
    """Its manager outlives a killed experiment, whose checkpoint is from the start."""
    whole, killed = (SearchStrategy("evolution", **SMALL, seed=1) for _ in range(2))
    run(whole, Workers(2, 100))
    space = SimplifiedModelSpace.from_model(Network(), None)
    killed.initialize(space, Workers(1, 9))
    state = killed.state_dict()
    done = [*whole.archive[:4], *whole.archive[5:9]]
    engine = Workers(2, 100)
    engine.nodejs_binding = Manager([space.freeze(dict(one.sample)) for one in done], [one.metric for one in done])
    strategy = SearchStrategy("evolution", **SMALL, seed=1)
    strategy.initialize(space, engine)
    strategy.load_state_dict(state)
    strategy.run()
    assert sorted(keys(strategy)) == sorted(keys(whole))
    assert len(engine.submitted) == len(whole.archive) - len(done)
