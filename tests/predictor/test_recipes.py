"""Settings of predictors by name, changed, adapted, and impossible ones."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from nas_core.errors import ConfigError, NasExtError, UnknownChoiceError
from nas_core.graph import Graph, Graphs
from nas_core.options import parsed_settings
from nas_core.predictor import NNFormer, NNFormerPredictor, get_recipe, list_recipes
from nas_core.predictor.recipes import needed_by, recipe_types
from tests.predictor.graphs import random_graphs


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


def test_data_decide_what_the_model_reads() -> None:
    featured, bare = random_graphs((7, 40), features=True), Graphs.of([Graph([0, 40], [(0, 1)])])
    needed = {"attributes": 8, "shapes": 4, "static": 4, "max_nodes": 41}
    assert needed_by(random_graphs((7, 5)), get_recipe("paper")) == needed_by(featured, get_recipe("latency")) == {}
    assert needed_by(featured, get_recipe("paper")) == needed
    given = get_recipe("paper").changed(attributes=0, max_nodes=50)
    assert needed_by(featured, given) == {"shapes": 4, "static": 4}
    needed = needed_by(bare, get_recipe("latency"))
    assert needed == {"attributes": 0, "shapes": 0, "static": 0, "operations": 41}
    assert NNFormer(get_recipe("latency").changed(dim=16, **needed).model).embed.in_features == 41


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["dim"], "NAME=VALUE"), (["dmi=3"], "Did you mean 'dim'"), (["kept=dim"], "unknown setting"),
        (["dim=3", "dim=4"], "given twice"), (["dim=3.5"], "whole number"), (["bias=maybe"], "true or false"),
    ],
)  # fmt: skip
def test_settings_of_a_command_line(texts: list[str], message: str) -> None:
    changes = parsed_settings(["dim=64", "lr = 1e-3", "bias=true", "dropout=0"], recipe_types())
    assert changes == {"dim": 64, "lr": 1e-3, "bias": True, "dropout": 0.0} and type(changes["dropout"]) is float
    with pytest.raises(NasExtError, match=message):
        parsed_settings(texts, recipe_types())
