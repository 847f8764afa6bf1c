"""Bad input: each call raises its error, with a message of one line that names the value."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import optuna
import pytest

from nas_core.errors import ArchitectureError, ConfigError, UnknownChoiceError
from optuna_ext import (
    HATEvolutionSampler,
    MultiObjectiveSampler,
    RankNASSampler,
    SearchSampler,
    architecture_of,
    as_objective,
    suggest_architecture,
)
from tests.optuna_ext.study import SMALL, SPACE, quality, supernet


def optimized(sampler: Any) -> Any:
    def optimize(_: Path) -> None:
        study = optuna.create_study(sampler=sampler)
        study.optimize(lambda trial: quality(suggest_architecture(trial, SPACE)), n_trials=1)

    return optimize


DEEP = {"layers": 9, "attention": "linear", **{f"width.{layer}": 8 for layer in range(9)}}
CASES: list[tuple[Any, type[Exception], str]] = [
    (lambda _: architecture_of({"layers": 2, "width.0": 8}, SPACE), ArchitectureError, "attention"),
    (lambda _: architecture_of(DEEP, SPACE), ArchitectureError, "9"),
    (lambda _: as_objective(supernet(), "loss"), ConfigError, "'loss'"),
    (lambda _: HATEvolutionSampler(SPACE, populaton=8), UnknownChoiceError, "populaton"),
    (lambda _: SearchSampler(SPACE, strategy="evoluton"), UnknownChoiceError, "evoluton"),
    (lambda _: RankNASSampler(SPACE, seed=-1), ConfigError, "-1"),
    (lambda _: RankNASSampler("hat_small"), ConfigError, "'hat_small'"),  # type: ignore[arg-type]
    (optimized(HATEvolutionSampler(SPACE, metrics=["loss", "size"], **SMALL)), ValueError, "loss, size"),
    (optimized(MultiObjectiveSampler(SPACE, population=4)), ValueError, "directions"),
]


@pytest.mark.parametrize(("call", "error", "value"), CASES, ids=range(len(CASES)))
def test_bad_input_is_one_line_that_names_it(call: Any, error: type[Exception], value: str, tmp_path: Path) -> None:
    with pytest.raises(error) as caught:
        call(tmp_path)
    message = str(caught.value)
    assert "\n" not in message and value in message, message
