"""Optuna's own contract suite for samplers, on each of ours."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from optuna.samplers import BaseSampler
from optuna.testing.pytest_samplers import (
    BasicSamplerTestCase,
    MultiObjectiveSamplerTestCase,
    RelativeSamplerTestCase,
    SingleOnlySamplerTestCase,
)

from nas_core.space import Choice, SearchSpace
from optuna_ext import HATEvolutionSampler, MultiObjectiveSampler, RankNASSampler

SPACE = SearchSpace("tiny", [Choice.make("layers", [1, 2]), Choice.make("width", list(range(8, 16)), "layers", 2)])


class TestHATEvolutionSampler(BasicSamplerTestCase, RelativeSamplerTestCase, SingleOnlySamplerTestCase):
    @pytest.fixture
    def sampler(self) -> Callable[[], BaseSampler]:
        return lambda: HATEvolutionSampler(SPACE, population=5)


class TestRankNASSampler(BasicSamplerTestCase, RelativeSamplerTestCase, SingleOnlySamplerTestCase):
    @pytest.fixture
    def sampler(self) -> Callable[[], BaseSampler]:
        return lambda: RankNASSampler(SPACE, samples=20)


class TestMultiObjectiveSampler(BasicSamplerTestCase, RelativeSamplerTestCase, MultiObjectiveSamplerTestCase):
    @pytest.fixture
    def sampler(self) -> Callable[[], BaseSampler]:
        return lambda: MultiObjectiveSampler(SPACE, population=4)
