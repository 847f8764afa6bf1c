"""Settings of predictors by name, changed, adapted, and impossible ones."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from nas_core.errors import ConfigError, UnknownChoiceError
from nas_core.predictor import NNFormerPredictor, get_recipe, list_recipes


def test_statistics_of_nothing() -> None:
    for changes in ({"members": 0}, {"statistics": 1}, {"processes": 0, "trees": 0}):
        with pytest.raises(ConfigError, match="members 0 with statistics 1"):
            get_recipe("paper").changed(**changes)
    alone = get_recipe("best").changed(members=0, statistics=1)
    assert alone.adapted(4236).statistics == replace(alone, kept=()).adapted(4236).statistics == 1


def test_a_prior_needs_statistics_that_learn_from_it() -> None:
    with pytest.raises(ConfigError, match="from_prior with statistics 0"):
        get_recipe("paper").changed(from_prior=True)
    assert "added to what is known of public benchmarks" in get_recipe("prior").mixture


def test_the_best_recipe_adapts_to_the_number_of_graphs() -> None:
    recipe = get_recipe("best")
    assert recipe.adapted(100) == recipe and recipe.learns_shares
    given = recipe.changed(statistics=0.5).adapted(4236)
    assert given.statistics == 0.5 and given.train.batch_size == 66 and not given.learns_shares
    assert recipe.changed(batch_size=8, dim=64).adapted(6400).train.batch_size == 8
    assert recipe.adapted(100).train.batch_size == 16 and recipe.adapted(6400).train.batch_size == 100
    paper = get_recipe("paper")
    assert paper.adapted(4236) == paper


def test_whose_a_prediction_is_of_the_other_recipes() -> None:
    assert get_recipe("paper").adapted(424).mixture == "each prediction is NN-Former's alone (1 network)"
    best = get_recipe("best")
    assert best.changed(statistics=0).adapted(50).mixture.endswith("NN-Former's alone (5 networks)")
    assert best.mixture == (
        "each prediction mixes NN-Former (5 networks) and graph statistics (8 Gaussian processes, 8 boosted trees), in"
        " shares that graphs left out decide"
    )
    assert best.changed(statistics=0.6).mixture == (
        "each prediction is 0.40 NN-Former (5 networks) and 0.60 graph statistics (8 Gaussian processes, 8 boosted"
        " trees)"
    )
    assert get_recipe("statistics").mixture.endswith("statistics alone, without NN-Former")


def test_recipes() -> None:
    assert {"paper", "latency"} <= set(list_recipes())
    assert get_recipe("paper").changed(dim=64, epochs=3, members=2).model.dim == 64
    with pytest.raises(UnknownChoiceError, match="paper"):
        NNFormerPredictor("papper")
    with pytest.raises(ConfigError, match="widht"):
        NNFormerPredictor("paper", widht=3)
    with pytest.raises(UnknownChoiceError, match="unseen"):
        NNFormerPredictor("paper", unseen="maybe")
    with pytest.raises(UnknownChoiceError, match="scale of targets"):
        NNFormerPredictor("paper", targets="log")
    with pytest.raises(ConfigError, match="recipe is a dict"):
        NNFormerPredictor({})  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", [-1, 1.5, "0", None, True, 2**32])
def test_wrong_seeds(seed: Any) -> None:
    with pytest.raises(ConfigError, match="seed of a predictor is"):
        NNFormerPredictor("paper", seed=seed)


@pytest.mark.parametrize(
    "changes",
    [
        {"members": -1},
        {"members": 1.0},
        {"statistics": "half"},
        {"statistics": float("nan")},
        {"processes": -1},
        {"trees": 2.5},
        {"adapts": "no"},
        {"dim": 32.0},
        {"dim": "32"},
        {"attributes": -1},
        {"dropout": float("nan")},
        {"layer_scale": -1e-4},
        {"offset": float("inf")},
        {"bias": 1},
        {"lr": float("nan")},
    ],
)
def test_impossible_settings(changes: dict[str, Any]) -> None:
    (name,) = changes
    with pytest.raises(ConfigError, match=f"{name} of .* is .*; expected"):
        get_recipe("paper").changed(**changes)


def test_numbers_of_numpy_become_plain_ones() -> None:
    recipe = get_recipe("paper").changed(epochs=np.int64(3), lr=np.float32(0.5), dim=np.int32(32), dropout=0)
    assert [type(x) for x in (recipe.train.epochs, recipe.train.lr, recipe.model.dropout)] == [int, float, float]
    assert NNFormerPredictor("paper", seed=np.int64(4)).seed == 4  # type: ignore[arg-type]
