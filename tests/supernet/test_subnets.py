"""The subnet in use, and draws of updates and validations."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from nas_core.errors import NasExtError, UnknownChoiceError
from nas_core.space import Architecture, Choice, SearchSpace, get_space
from nas_core.supernet import sandwich
from nas_core.supernet.holder import SubnetHolder
from nas_core.supernet.sampling import DRAWS, draw, validation_set

SPACE = get_space("hat_small")
WIDTHS = SearchSpace("width", [Choice.make("width", list(range(1, 33)))])


class Narrow(SubnetHolder[Tensor], nn.Module):
    """A linear layer of which each architecture takes the first columns."""

    def __init__(self, seed: int = 1, sampling: str = "gene") -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.arange(32.0)[None])
        self.selected = 0
        self.set_space(WIDTHS, seed, sampling)

    def select(self, architecture: Architecture) -> Tensor:
        self.selected += 1
        return self.weight[:, : architecture.number("width")]

    def forward(self) -> Tensor:
        return self.active_subnet().sum()


def of(width: int) -> Architecture:
    return Architecture({"width": width})


def test_the_architecture_in_use_is_the_draw_in_training_and_the_largest_in_evaluation() -> None:
    model = Narrow()
    assert model.architecture == WIDTHS.largest()
    model.train_architecture = model.draw(7)
    assert model.train().architecture == model.draw(7) != WIDTHS.largest()
    assert model.eval().architecture == WIDTHS.largest()
    model.eval_architecture = of(3)
    assert model.architecture == of(3) and model().item() == 0 + 1 + 2


def test_a_fixed_architecture_wins_in_every_mode_and_ends_with_its_block() -> None:
    model = Narrow()
    for mode in (True, False):
        model.train(mode)
        with model.use_architecture(of(4)):
            assert model.architecture == model.fixed_architecture == of(4)
            with model.use_architecture(of(2), freeze=True):
                assert model().item() == 1
            assert model().item() == 6 and model.architecture == of(4)
        assert model.fixed_architecture is None
    with pytest.raises(RuntimeError, match="inside"), model.use_architecture(of(4), freeze=True):
        raise RuntimeError("inside")
    assert model.fixed_architecture is None and model().item() == sum(range(32))


@pytest.mark.parametrize("sampling", DRAWS)
def test_draws_depend_on_seed_and_update_alone(sampling: str) -> None:
    expected = [draw(SPACE, update, seed=3, sampling=sampling) for update in range(20)]
    draw(SPACE, 99, sampling=sampling)
    random.seed(1)
    np.random.seed(1)
    torch.manual_seed(1)
    assert [draw(SPACE, update, seed=3, sampling=sampling) for update in reversed(range(20))] == expected[::-1]
    assert all(architecture in SPACE for architecture in expected)
    assert len(set(expected)) > 15


def test_sandwich_holds_the_random_one_and_both_ends() -> None:
    drawn = draw(SPACE, 5)
    assert sandwich(SPACE, drawn) == {"random": drawn, "largest": SPACE.largest(), "smallest": SPACE.smallest()}
    assert list(sandwich(SPACE, drawn)) == ["random", "largest", "smallest"]


def test_validation_set_is_fixed() -> None:
    result = validation_set(SPACE, 3)
    assert list(result) == ["smallest", "largest", "random1", "random2", "random3"]
    assert result == validation_set(SPACE, 3)
    assert (result["smallest"], result["largest"]) == (SPACE.smallest(), SPACE.largest())
    assert len(set(result.values())) == 5
    assert list(validation_set(SPACE, 2).items()) == list(result.items())[:4]
    assert validation_set(SPACE, 3, seed=1)["random1"] != result["random1"]
    assert list(validation_set(SPACE, 0)) == ["smallest", "largest"]


def test_the_ends_of_hats_code_read_two_encoder_layers_in_every_decoder_layer() -> None:
    drawn, cross = draw(SPACE, 5), "decoder.arbitrary_cross"
    for by_name in (sandwich(SPACE, drawn, "hat"), validation_set(SPACE, 2, extremes="hat")):
        for name, expected in (("smallest", SPACE.smallest()), ("largest", SPACE.largest())):
            end = SPACE.validate(by_name[name])
            assert end[cross] == (1,) * end.number("decoder.layers") != expected[cross]
            assert {**end.to_dict(), cross: None} == {**expected.to_dict(), cross: None}
    assert sandwich(SPACE, drawn, "hat")["random"] == drawn
    assert list(validation_set(SPACE, 2, extremes="hat").items())[2:] == list(validation_set(SPACE, 2).items())[2:]


@pytest.mark.parametrize(
    ("call", "error", "value"),
    [
        (lambda: draw(SPACE, 0, sampling="genes"), UnknownChoiceError, "'genes'"),
        (lambda: sandwich(SPACE, SPACE.largest(), "hats"), UnknownChoiceError, "'hats'"),
    ],
)
def test_bad_input(call: Callable[[], Any], error: type[NasExtError], value: str) -> None:
    with pytest.raises(error) as caught:
        call()
    assert value in str(caught.value) and "\n" not in str(caught.value)
