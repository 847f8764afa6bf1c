"""The strategies by name, on spaces of NNI's hub and on ours."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("nni.nas.strategy", reason="needs NNI: pip install 'nas-ext[nni]'")

import nni
from nni.nas.evaluator import FunctionalEvaluator
from nni.nas.execution import SequentialExecutionEngine
from nni.nas.space import SimplifiedModelSpace

from nas_core.models import params_m
from nas_core.space import SearchSpace
from nni_ext import SearchStrategy, as_model_space

HAT = {"iterations": 6, "population": 12, "parents": 4}
RANK: dict[str, Any] = {
    "samples": 12, "rounds": 3, "per_round": 8, "candidates": 100, "generations": 2, "parents": 10, "children": 20,
}  # fmt: skip
WORTH = {"none": 0, "skip_connect": 2, "conv_1x1": 3, "conv_3x3": 4, "avg_pool_3x3": 1}


class Formula(FunctionalEvaluator):  # type: ignore[misc]
    """A metric of the frozen model without building it."""

    def _execute(self, model: Any) -> None:
        nni.report_final_result(self.function(model))


def worth(model: Any) -> float:
    return float(sum(WORTH[op] * weight for op, weight in zip(model.sample.values(), (1, 2, 3, 1, 2, 3), strict=True)))


def searched(strategy: Any, model_space: Any, metric: Any, models: int = 100, kind: Any = SimplifiedModelSpace) -> Any:
    strategy(kind.from_model(model_space, Formula(metric)), SequentialExecutionEngine(models))
    return strategy


def test_own_space_with_genes_of_its_own(space: SearchSpace) -> None:
    def small(model: Any) -> float:
        return -params_m(model.executable_model().architecture)

    strategy = searched(SearchStrategy("ranknas", **RANK), as_model_space(space), small)
    assert strategy.search.space == space
    assert next(iter(strategy.search.importance["-metric"])) in [choice.name for choice in space.choices]
    assert strategy.best().metric == -min(params_m(one.architecture) for one in strategy.archive)


def test_resumed_in_the_middle_of_a_ranking(nasbench201: Any) -> None:
    full = searched(SearchStrategy("ranknas", **RANK), nasbench201, worth)
    first = searched(SearchStrategy("ranknas", **RANK), nasbench201, worth, 15)
    second = SearchStrategy("ranknas", **RANK)
    second.initialize(SimplifiedModelSpace.from_model(nasbench201, Formula(worth)), SequentialExecutionEngine(100))
    second.load_state_dict(first.state_dict())
    second.run()
    assert second.archive == full.archive
