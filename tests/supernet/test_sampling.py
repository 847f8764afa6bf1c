"""Which architectures an update trains and a validation looks at."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest
import torch

from nas_core.errors import UnknownChoiceError
from nas_core.space import Choice, SearchSpace, get_space, hat_draw, hat_extremes
from nas_core.supernet import draw, sandwich, validation_set
from nas_core.supernet.sampling import DRAWS

SPACE = get_space("hat_small")


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


def test_draws_leave_global_generators_alone() -> None:
    def state() -> tuple[float, float, float]:
        random.seed(5)
        np.random.seed(5)
        torch.manual_seed(5)
        for how in DRAWS if drawing else ():
            draw(SPACE, 1, how=how)
        return random.random(), float(np.random.rand()), float(torch.rand(1))

    drawing = False
    expected = state()
    drawing = True
    assert state() == expected


@pytest.mark.parametrize("how", ["gene", "architecture"])
def test_another_seed_draws_others(how: str) -> None:
    first, second = ([draw(SPACE, update, seed, how) for update in range(30)] for seed in (1, 2))
    assert sum(a == b for a, b in zip(first, second, strict=True)) < 3
    assert draw(SPACE, 2, 1, how) != draw(SPACE, 1, 2, how)


def test_hats_stream_ignores_the_seed() -> None:
    for update in (0, 1, 40_000):
        assert draw(SPACE, update, seed=7, how="hat") == draw(SPACE, update, seed=8, how="hat")
        assert draw(SPACE, update, how="hat") == hat_draw(SPACE, update)


def test_depths_are_uniform_by_gene_and_proportional_to_their_number_by_architecture() -> None:
    shares = {
        how: Counter(draw(SPACE, update, how=how).number("decoder.layers") for update in range(600))
        for how in ("gene", "architecture")
    }
    assert all(150 < shares["gene"][depth] < 250 for depth in (1, 2, 3))
    assert shares["architecture"][3] > 560  # 36^3 of 36 + 36^2 + 36^3


def test_unknown_way_of_drawing() -> None:
    with pytest.raises(UnknownChoiceError, match="Did you mean 'gene'"):
        draw(SPACE, 0, how="genes")


def test_sandwich_holds_the_random_one_and_both_ends() -> None:
    drawn = draw(SPACE, 5)
    assert sandwich(SPACE, drawn) == {"random": drawn, "largest": SPACE.largest(), "smallest": SPACE.smallest()}
    assert list(sandwich(SPACE, drawn)) == ["random", "largest", "smallest"]


def test_validation_set_is_fixed() -> None:
    found = validation_set(SPACE, 3)
    assert list(found) == ["smallest", "largest", "random1", "random2", "random3"]
    assert found == validation_set(SPACE, 3)
    assert (found["smallest"], found["largest"]) == (SPACE.smallest(), SPACE.largest())
    assert len(set(found.values())) == 5
    assert list(validation_set(SPACE, 2).items()) == list(found.items())[:4]
    assert validation_set(SPACE, 3, seed=1)["random1"] != found["random1"]
    assert list(validation_set(SPACE, 0)) == ["smallest", "largest"]


def test_the_ends_of_hats_code_read_two_encoder_layers_in_every_decoder_layer() -> None:
    drawn, cross = draw(SPACE, 5), "decoder.arbitrary_cross"
    for found in (sandwich(SPACE, drawn, "hat"), validation_set(SPACE, 2, extremes="hat")):
        for name, own in (("smallest", SPACE.smallest()), ("largest", SPACE.largest())):
            one = SPACE.validate(found[name])
            assert one[cross] == (1,) * one.number("decoder.layers") != own[cross]
            assert {**one.to_dict(), cross: None} == {**own.to_dict(), cross: None}
    assert sandwich(SPACE, drawn, "hat")["random"] == drawn
    assert list(validation_set(SPACE, 2, extremes="hat").items())[2:] == list(validation_set(SPACE, 2).items())[2:]
    with pytest.raises(UnknownChoiceError, match="Did you mean 'hat'"):
        sandwich(SPACE, drawn, "hats")


def test_layers_that_cannot_read_two_keep_their_own() -> None:
    choices = [
        Choice.make("layers", (2, 1)),
        Choice("decoder.arbitrary_cross", ((-1, 2), (-1, 1, 2)), "layers"),
    ]
    smallest, largest = hat_extremes(SearchSpace("some", choices))
    assert (smallest["decoder.arbitrary_cross"], largest["decoder.arbitrary_cross"]) == ((-1,), (2, 1))
    once = SearchSpace("once", [Choice.make("decoder.arbitrary_cross", (-1, 1, 2))])
    assert [one["decoder.arbitrary_cross"] for one in hat_extremes(once)] == [1, 1]
    plain = SearchSpace("none", choices[:1])
    assert hat_extremes(plain) == (plain.smallest(), plain.largest())


def test_a_static_network_is_validated_once() -> None:
    architecture = draw(SPACE, 5)
    assert validation_set(SearchSpace.of(architecture, like=SPACE), 3) == {"largest": architecture}
