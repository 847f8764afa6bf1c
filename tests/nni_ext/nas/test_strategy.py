"""What all strategies share: engines, failures, limits, wrong use."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("nni.nas.strategy", reason="needs NNI: pip install 'nas-ext[nni]'")

from nni.nas.execution.event import FinalMetricEvent, TrainingEndEvent
from nni.nas.nn.pytorch import ModelSpace
from nni.nas.profiler.pytorch.flops import FlopsProfiler, NumParamsProfiler
from nni.nas.space import ModelStatus
from nni.nas.strategy.middleware import Chain, Filter

from nas_core.errors import ConfigError, SpaceError
from nas_core.search import InfeasibleError
from nas_core.space import SearchSpace
from nni_ext import ProfilerLimit, SearchStrategy, as_model_space
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


def test_budget_ends_the_run() -> None:
    for budget in (1, 5, 9):
        strategy = run(SearchStrategy("evolution", **SMALL), Workers(3, budget))
        assert len(strategy.archive) == budget and not strategy.search.finished


@pytest.mark.parametrize("fails", [lambda index: index % 3 == 0, lambda index: index < 9, lambda index: True])
def test_failing_models_are_survived(fails: Callable[[int], bool]) -> None:
    engine = Workers(2, 100, fails)
    strategy = run(SearchStrategy("evolution", **SMALL), engine)
    assert strategy.search.finished
    failed = [fails(index) for index in range(len(engine.submitted))]
    assert sum(one.metric is None for one in strategy.archive) == sum(failed)
    assert (strategy.best() is None) == all(failed)


def test_what_is_no_metric(experiments: Any) -> None:
    def metric(sample: dict[str, Any]) -> Any:
        values = {1: {"default": sample["width"], "latency": 1.0}, 3: float("nan"), 5: None}
        if sample["act0"]:
            raise RuntimeError("out of memory")
        return values[sample["kernel"]]

    strategy = SearchStrategy("random", evaluations=30)
    experiments(strategy, Formula(metric), 30, failing=True).run()
    assert len(strategy.archive) == 30
    for one in strategy.archive:
        good = one.sample["kernel"] == 1 and not one.sample["act0"]
        assert one.metric == (one.sample["width"] if good else None)


def test_invalid_models_of_a_filter(experiments: Any) -> None:
    strategy = SearchStrategy("evolution", **SMALL)
    chain = Chain(strategy, Filter(lambda model: model.sample["width"] < 16))
    experiments(chain, Formula(wide_and_sharp), 100).run()
    assert {one.sample["width"] for one in strategy.archive if one.metric is None} == {16}
    assert max(one.sample["width"] for one in strategy.archive if one.metric is not None) == 8


def test_layers_that_do_not_exist_tell_nothing_apart(space: SearchSpace) -> None:
    class Lengths(Workers):
        def _train(self, reference: Any, index: int) -> None:
            model = reference()
            self.dispatch_model_event(FinalMetricEvent(model, len(model.executable_model().architecture.key)))
            self.dispatch_model_event(TrainingEndEvent(model, ModelStatus.Trained))
            self.idle += 1

    strategy = run(SearchStrategy("evolution", **SMALL), Lengths(1, 100), as_model_space(space))
    assert strategy.search.space == space
    assert all(one.architecture in space for one in strategy.archive)


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


def test_wrong_use() -> None:
    class Plain(ModelSpace):  # type: ignore[misc]
        pass

    used = run(SearchStrategy("evolution", **SMALL), Workers(1, 3))
    fresh = SearchStrategy("evolution")
    wrong: list[tuple[type[Exception], str, Any]] = [
        (ConfigError, "was used in an experiment before", lambda: run(used, Workers(1, 3))),
        (SpaceError, "nothing to choose", lambda: run(SearchStrategy("evolution"), Workers(1, 3), Plain())),
        (ConfigError, "has no model space yet", fresh.state_dict),
        (ConfigError, "has no model space yet", lambda: fresh.load_state_dict({})),
    ]
    for kind, said, call in wrong:
        with pytest.raises(kind) as caught:
            call()
        assert said in str(caught.value) and "\n" not in str(caught.value)
    assert len(used.archive) == 3 and fresh.archive == [] and fresh.best() is None
