"""NNI's profilers as limits."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

pytest.importorskip("nni.nas.strategy", reason="needs NNI: pip install 'nas-ext[nni]'")

from nni.nas.hub.pytorch import AutoFormer, NasBench101
from nni.nas.profiler import Profiler
from nni.nas.profiler.pytorch.flops import FlopsProfiler, NumParamsProfiler
from nni.nas.space import SimplifiedModelSpace

from nas_core.errors import NasExtError
from nas_core.predictor import NNFormerPredictor
from nas_core.search import RandomConfig, RandomSearch
from nas_core.space import SearchSpace
from nni_ext import PredictorProfiler, as_model_space
from nni_ext.nas.limits import limit_constraint, validity_constraint
from nni_ext.nas.spaces import FlatSpace, flatten


class Counting(Profiler):  # type: ignore[misc]
    """Sum of given costs of a sample's values; it counts its calls."""

    calls = 0

    def profile(self, sample: dict[str, Any]) -> float:
        self.calls += 1
        return float(sum(op == "conv_3x3" for op in sample.values()))


def drawn(flat: FlatSpace, count: int) -> Any:
    return flat.space.sample_rows(np.random.default_rng(0), count)


def test_costs_of_nni_are_what_it_says() -> None:
    space = AutoFormer(search_depth=(2, 3))
    flat = flatten(space)
    for kind in (FlopsProfiler, NumParamsProfiler):
        profiler = kind(space, torch.randn(1, 3, 224, 224))
        rows = drawn(flat, 40)
        values = [profiler.profile(flat.sample_of_row(row)) for row in rows]
        limit = float(np.median(values))
        constraint = limit_constraint(flat, space, "cost", profiler, limit)
        assert constraint.values(rows).tolist() == values
        search = RandomSearch(flat.space, [constraint], RandomConfig(evaluations=10))
        assert max(profiler.profile(flat.sample(one)) for one in search.ask(10)) <= limit


def test_predictors_are_asked_for_many_at_once(
    nasbench201: Any, predictor201: NNFormerPredictor, space: SearchSpace, predictor_hat: NNFormerPredictor
) -> None:
    for model_space, predictor in ((nasbench201, predictor201), (as_model_space(space), predictor_hat)):
        profiler = PredictorProfiler(model_space, predictor)
        flat = flatten(model_space)
        constraint = limit_constraint(flat, model_space, "latency_ms", profiler, 1e6)
        rows = drawn(flat, 30)
        one_by_one = []
        for row in rows:
            try:
                one_by_one.append(profiler.profile(flat.sample_of_row(row)))
            except NasExtError:  # no way from input to output
                one_by_one.append(math.nan)
        assert constraint.values(rows) == pytest.approx(one_by_one, rel=1e-5, nan_ok=True)


def test_each_architecture_is_profiled_once(nasbench201: Any) -> None:
    profiler = Counting(nasbench201)
    flat = flatten(nasbench201)
    constraint = limit_constraint(flat, nasbench201, "convolutions", profiler, 2)
    rows, before = drawn(flat, 25), profiler.calls
    first = constraint.values(rows)
    assert profiler.calls - before == len({row.tobytes() for row in rows})
    assert constraint.values(rows[::-1]).tolist() == first[::-1].tolist()
    assert profiler.calls - before == len({row.tobytes() for row in rows})


def test_samples_that_nni_refuses_are_not_asked_for() -> None:
    nasbench101 = NasBench101(stem_out_channels=8, num_stacks=1, num_modules_per_stack=1)
    space = SimplifiedModelSpace.from_model(nasbench101, None)
    flat = flatten(space)
    assert not all(space.contains(flat.sample_of_row(row)) for row in drawn(flat, 30))
    search = RandomSearch(flat.space, [validity_constraint(flat, space)], RandomConfig(evaluations=30))
    for architecture in search.ask(30):
        assert "cell/final" in space.freeze(flat.sample(architecture)).sample
