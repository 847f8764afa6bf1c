"""Options and architectures by label."""

from __future__ import annotations

import pytest

from nas_core.space import Choice, SearchSpace, get_space
from nas_core.space.labels import options_by_label, parameters_of

SPACE = SearchSpace(
    "labelled",
    [
        Choice.make("layers", [1, 2]),
        Choice("width", ((8, 16), (32,)), per="layers"),
        Choice.make("activation", ["relu", "gelu"]),
    ],
    {"head_dim": 4},
)


def test_each_layer_that_could_exist_has_a_label() -> None:
    options = {"layers": (1, 2), "width.0": (8, 16), "width.1": (32,), "activation": ("relu", "gelu")}
    assert options_by_label(SPACE) == options


def test_an_architecture_has_the_labels_of_its_layers_alone() -> None:
    assert parameters_of(SPACE, SPACE.smallest()).keys() == {"layers", "width.0", "activation"}
    assert parameters_of(SPACE, SPACE.largest())["width.1"] == 32


@pytest.mark.parametrize("name", ["hat_small", "vit_cifar10_small"])
def test_what_an_architecture_has_is_among_the_options(name: str) -> None:
    space = get_space(name)
    options, parameters = options_by_label(space), parameters_of(space, space.largest())
    assert parameters.keys() == options.keys()
    assert all(parameters[label] in options[label] for label in options)
