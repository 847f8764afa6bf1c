"""Benchmark predictor_quality: methods, and the number of evaluation cells in rows."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.parts.published import NASBENCH101, absent
from benchmarks.predictor.predictor_quality import METHODS, Task, recipe_of, split_of, summary
from nas_core.predictor.recipes import get_recipe

needs_tables = pytest.mark.skipif(absent(NASBENCH101) is not None, reason=str(absent(NASBENCH101)))


def test_a_method_changes_settings_of_a_recipe() -> None:
    recipe, ensemble = recipe_of("ensemble, paper masks"), get_recipe("ensemble")
    assert "ensemble, paper masks" in METHODS and recipe is not None
    assert (recipe.model.sibling_mask, ensemble.model.sibling_mask) == ("paper", "as_released")
    assert (recipe.train, recipe.members) == (ensemble.train, ensemble.members)


def test_rows_have_the_number_of_evaluation_cells() -> None:
    records: list[dict[str, Any]] = []
    for judged in (None, 40):
        key = Task("nasbench101", 100, 0, "ensemble", (), False, judged).key
        records.append({**key, "tau": 0.7, "fit_cpu_s": 1.0})
    full, part = records
    assert (full["judged"], part["judged"]) == ("all", 40) and full["settings"] == part["settings"]
    assert [summary([record])[0]["judged"] for record in records] == ["all", 40]


@needs_tables
def test_a_sample_of_the_cells_is_the_same_each_time() -> None:
    first, second = (split_of(Task("nasbench201", 10, draw, "statistics", (), False, 50)) for draw in (0, 1))
    assert len(first.eval_graphs) == 50 and (first.eval_accuracies == second.eval_accuracies).all()
