"""The subnet in use, draws of updates and validations, and the stability of rankings."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from nas_core.errors import ConfigError, DataError, NasExtError, UnknownChoiceError
from nas_core.space import Architecture, Choice, SearchSpace, get_space
from nas_core.supernet import sandwich
from nas_core.supernet.holder import SubnetHolder
from nas_core.supernet.sampling import DRAWS, draw, validation_set
from nas_core.supernet.stability import Stability, StabilityConfig

SPACE = get_space("hat_small")
WIDTHS = SearchSpace("width", [Choice.make("width", list(range(1, 33)))])


class Narrow(SubnetHolder[Tensor], nn.Module):
    """A linear layer of which each architecture takes the first columns."""

    def __init__(self, seed: int = 1, how: str = "gene") -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.arange(32.0)[None])
        self.selected = 0
        self.start(WIDTHS, seed, how)

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


def test_what_is_held_wins_in_every_mode_and_ends_with_its_block() -> None:
    model = Narrow()
    for mode in (True, False):
        model.train(mode)
        with model.using(of(4)):
            assert model.architecture == model.held == of(4)
            with model.using(of(2), freeze=True):
                assert model().item() == 1
            assert model().item() == 6 and model.architecture == of(4)
        assert model.held is None
    with pytest.raises(RuntimeError, match="inside"), model.using(of(4), freeze=True):
        raise RuntimeError("inside")
    assert model.held is None and model().item() == sum(range(32))


@pytest.mark.parametrize("how", DRAWS)
def test_draws_depend_on_seed_and_update_alone(how: str) -> None:
    expected = [draw(SPACE, update, seed=3, how=how) for update in range(20)]
    draw(SPACE, 99, how=how)
    random.seed(1)
    np.random.seed(1)
    torch.manual_seed(1)
    assert [draw(SPACE, update, seed=3, how=how) for update in reversed(range(20))] == expected[::-1]
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


def stability(count: int = 40, **settings: Any) -> Stability:
    return Stability(SPACE, StabilityConfig(architectures=count, **settings))


def test_it_stops_when_the_ranking_settles() -> None:
    """Losses fall, and the noise between subnets with them: tau grows, and stops training above the threshold."""
    rng = np.random.default_rng(0)
    truth = rng.normal(size=40)
    stop = stability(tau=0.9, patience=100)
    taus = []
    for epoch in range(30):
        tau = stop.update(10 / (epoch + 1) + truth + rng.normal(size=40) * 2.0**-epoch)
        assert (tau is None) == (epoch == 0)
        taus.append(tau)
        if stop.stable:
            break
    assert 3 < epoch < 29 and stop.taus == taus[1:]
    assert stop.taus[-1] > 0.9 >= max(stop.taus[:-1])


def test_it_stops_when_tau_has_risen_often_enough_in_a_row() -> None:
    stop = stability(tau=1.0, patience=2)
    for taus, rises, stable in (
        ([], 0, False),
        ([0.1], 0, False),
        ([0.1, 0.2, 0.3], 2, False),
        ([0.1, 0.2, 0.3, 0.3], 0, False),
        ([0.5, 0.1, 0.2, 0.3, 0.4], 3, True),
    ):
        stop.taus = taus
        assert (stop.rises, stop.stable) == (rises, stable)


def test_the_state_is_plain_and_continues() -> None:
    rng = np.random.default_rng(1)
    first, other = stability(5), stability(5)
    for _ in range(3):
        first.update(rng.normal(size=5))
    other.load_state_dict(json.loads(json.dumps(first.state_dict())))
    losses = rng.normal(size=5)
    assert other.update(losses) == first.update(losses)
    assert other.taus == first.taus


@pytest.mark.parametrize(
    ("call", "error", "value"),
    [
        (lambda: draw(SPACE, 0, how="genes"), UnknownChoiceError, "'genes'"),
        (lambda: sandwich(SPACE, SPACE.largest(), "hats"), UnknownChoiceError, "'hats'"),
        (lambda: Stability(SearchSpace.of(SPACE.smallest(), SPACE)), ConfigError, "one architecture"),
        (lambda: StabilityConfig(tau=1.5), ConfigError, "1.5"),
        (lambda: stability(3).update([1.0, 2.0, np.nan]), DataError, "1 of 3 losses"),
        (lambda: stability(6).load_state_dict({"losses": [1.0], "taus": []}), DataError, "1 losses"),
    ],
)
def test_bad_input(call: Callable[[], Any], error: type[NasExtError], value: str) -> None:
    with pytest.raises(error) as caught:
        call()
    assert value in str(caught.value) and "\n" not in str(caught.value)
