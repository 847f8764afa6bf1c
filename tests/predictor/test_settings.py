"""Settings from a command line, and those that the data need."""

from __future__ import annotations

import pytest

from nas_core.errors import ConfigError, NasExtError
from nas_core.graph import Graph, Graphs
from nas_core.predictor import NNFormer, get_recipe
from nas_core.predictor.settings import needed_by, recipe_types
from nas_core.settings import parsed_settings
from tests.predictor.graphs import random_graphs


def test_values_have_the_type_of_their_field() -> None:
    changes = parsed_settings(["dim=64", "lr = 1e-3", "bias=true", "targets=normal", "dropout=0"], recipe_types())
    assert changes == {"dim": 64, "lr": 1e-3, "bias": True, "targets": "normal", "dropout": 0.0}
    assert type(changes["dropout"]) is float and get_recipe("paper").changed(**changes).model.dim == 64


def test_settings_of_others() -> None:
    changes = parsed_settings(["dim=64", "units=percent", "seed=3"], {**recipe_types(), "units": str, "seed": int})
    assert changes == {"dim": 64, "units": "percent", "seed": 3}
    with pytest.raises(ConfigError, match="whole number"):
        parsed_settings(["seed=a"], {"seed": int})


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["dim"], "NAME=VALUE"),
        (["=3"], "NAME=VALUE"),
        (["dim="], "NAME=VALUE"),
        (["dmi=3"], "Did you mean 'dim'"),
        (["seed=3"], "unknown setting"),
        (["kept=dim"], "unknown setting"),
        (["dim=3", "dim=4"], "given twice"),
        (["dim=3.5"], "whole number"),
        (["lr=fast"], "a number"),
        (["bias=maybe"], "true or false"),
    ],
)
def test_wrong_settings(texts: list[str], message: str) -> None:
    with pytest.raises(NasExtError, match=message):
        parsed_settings(texts, recipe_types())


def test_data_decide_what_the_model_reads() -> None:
    assert needed_by(random_graphs((7, 5)), get_recipe("paper")) == {}
    featured = random_graphs((7, 40), features=True)
    needed = needed_by(featured, get_recipe("paper"))
    assert needed == {"attributes": 8, "shapes": 4, "static": 4, "max_nodes": 41}
    assert needed_by(featured, get_recipe("latency")) == {}
    bare = Graphs.of([Graph([0, 40], [(0, 1)])])
    needed = needed_by(bare, get_recipe("latency"))
    assert needed == {"attributes": 0, "shapes": 0, "static": 0, "operations": 41}
    recipe = get_recipe("latency").changed(dim=16, **needed)
    assert NNFormer(recipe.model).embed.in_features == 41
    given = get_recipe("paper").changed(attributes=0, max_nodes=50)
    assert needed_by(featured, given) == {"shapes": 4, "static": 4}
    with pytest.raises(ConfigError):
        get_recipe("paper").changed(dim=6)
