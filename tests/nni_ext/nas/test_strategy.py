"""What all strategies share: engines, failures, limits, wrong use."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("nni.nas.strategy", reason="needs NNI: pip install 'nas-ext[nni]'")

from nni.nas.hub.pytorch import NasBench201
from nni.nas.profiler.pytorch.flops import FlopsProfiler, NumParamsProfiler
from nni.nas.strategy.middleware import Chain, Filter

from nas_core.errors import ConfigError, SpaceError
from nas_core.predictor import PriorPredictor
from nas_core.search import InfeasibleError
from nni_ext import SearchStrategy
from nni_ext.graphs import nasbench201_sample
from tests.nni_ext.nas.engines import SMALL, Formula, Network, Workers, experiments_in, keys, run, wide_and_sharp


@pytest.fixture
def experiments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    with experiments_in(tmp_path, monkeypatch) as make:
        yield make


# -- engines ----------------------------------------------------------------------------------------------------------


def test_sequential_engine(experiments: Any) -> None:
    strategy, evaluator = SearchStrategy("evolution", **SMALL, seed=3), Formula(wide_and_sharp)
    experiment = experiments(strategy, evaluator, 100)
    experiment.run()
    experiment.stop()
    assert evaluator.seen == [dict(one.sample) for one in strategy.archive]
    assert 8 < len(strategy.archive) <= strategy.search.budget
    assert all(one.metric == wide_and_sharp(one.sample) for one in strategy.archive)
    best = strategy.best()
    assert best.metric == max(one.metric for one in strategy.archive)
    assert experiment.export_top_models(1, formatter="dict")[0] == best.sample
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


def test_a_predictor_without_training_selects_the_first_models() -> None:
    space = NasBench201()
    strategy = SearchStrategy("ranknas", samples=6, rounds=1, per_round=1, seed=1, prior=PriorPredictor())
    run(strategy, Workers(1, 6, lambda _: True), space)  # the engine cannot train them
    scores = PriorPredictor().predict([nasbench201_sample(one.sample) for one in strategy.archive])
    assert len(scores) == 6 and scores[:3].min() > scores[3:].max()
    with pytest.raises(SpaceError, match="is not supported"):
        run(SearchStrategy("ranknas", prior=PriorPredictor()), Workers(1, 6))


# -- limits -----------------------------------------------------------------------------------------------------------


def test_models_over_a_limit_are_never_evaluated() -> None:
    space, image = Network(), torch.randn(1, 3, 8, 8)
    flops, params = FlopsProfiler(space, image), NumParamsProfiler(space, image)
    limits = {"flops": (flops, 40_000.0), "params": (params, 500)}
    strategy = run(SearchStrategy("evolution", constraints=limits, **SMALL), Workers(2, 100), space)
    assert len(strategy.archive) >= 8
    for architecture in strategy.archive:
        assert architecture.costs == {
            "flops": flops.profile(architecture.sample),
            "params": params.profile(architecture.sample),
        }
        assert architecture.costs["flops"] <= 40_000 and architecture.costs["params"] <= 500


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
    full = SearchStrategy("evolution", **SMALL, seed=1)
    experiments(full, Formula(wide_and_sharp), 100).run()
    first = experiments(SearchStrategy("evolution", **SMALL, seed=1), Formula(interrupted(after)), 100)
    first.run()
    assert len(first.strategy.archive) == after
    evaluator, strategy = Formula(wide_and_sharp), SearchStrategy("evolution", **SMALL, seed=1)
    second = experiments(strategy, evaluator, 100, id=first.id)
    second.resume()
    second.stop()
    assert keys(strategy) == keys(full)
    assert strategy.best() == full.best()
    assert len(evaluator.seen) == len(full.archive) - after
    state = torch.load(checkpoint(second), weights_only=True)
    assert len(state["strategy"]["archive"]) == len(full.archive)


def checkpoint(experiment: Any) -> Path:
    return Path(experiment._checkpoint_directory) / "state.ckpt.torch"  # private: NNI's


def test_a_checkpoint_survives_a_failed_resume(experiments: Any) -> None:
    first = experiments(SearchStrategy("evolution", **SMALL, seed=1), Formula(interrupted(9)), 100)
    first.run()
    good = torch.load(checkpoint(first), weights_only=True)["strategy"]
    assert len(good["archive"]) == 9
    for changes in ({"seed": 2}, {"seed": 1, "maximize": False}):
        experiment = experiments(
            SearchStrategy("evolution", **SMALL, **changes), Formula(wide_and_sharp), 100, id=first.id
        )
        with pytest.raises(ConfigError):
            experiment.resume()
        experiment.stop()
        assert torch.load(checkpoint(experiment), weights_only=True)["strategy"] == good


def test_a_record_outlives_a_killed_process(tmp_path: Path) -> None:
    full = run(SearchStrategy("evolution", **SMALL, seed=1), Workers(1, 100))
    for budget in (3, 3, 5, 100):  # the experiment is begun anew each time, without NNI's checkpoint
        strategy = run(SearchStrategy("evolution", **SMALL, seed=1, record=tmp_path), engine := Workers(1, budget))
    assert keys(strategy) == keys(full)
    assert len(engine.submitted) == len(full.archive) - 11
    assert len((tmp_path / "journal.jsonl").read_text().splitlines()) == len(full.archive)
    with pytest.raises(ConfigError, match="seed"):
        run(SearchStrategy("evolution", **SMALL, seed=2, record=tmp_path), Workers(1, 100))
