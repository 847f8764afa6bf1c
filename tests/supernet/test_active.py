"""Holding, freezing and drawing the subnet that a model runs, on a module of one weight matrix."""

from __future__ import annotations

import copy
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import Tensor, nn

from nas_core.errors import ArchitectureError
from nas_core.space import Architecture, Choice, SearchSpace
from nas_core.supernet import SubnetHolder, draw

SPACE = SearchSpace("width", [Choice.make("width", list(range(1, 33)))])
OUTSIDE = Architecture({"width": 33})


class Narrow(SubnetHolder[Tensor], nn.Module):
    """A linear layer of which each architecture takes the first columns."""

    def __init__(self, seed: int = 1, how: str = "gene") -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.arange(32.0)[None])
        self.selected = 0
        self.start(SPACE, seed, how)

    def select(self, architecture: Architecture) -> Tensor:
        self.selected += 1
        return self.weight[:, : architecture.number("width")]

    def forward(self) -> Tensor:
        return self.active_subnet().sum()


def of(width: int) -> Architecture:
    return Architecture({"width": width})


def test_the_architecture_in_use_is_the_draw_in_training_and_the_largest_in_evaluation() -> None:
    model = Narrow()
    assert model.architecture == SPACE.largest()
    model.train_architecture = model.draw(7)
    assert model.train().architecture == model.draw(7) != SPACE.largest()
    assert model.eval().architecture == SPACE.largest()
    model.eval_architecture = of(3)
    assert model.architecture == of(3) and model().item() == 0 + 1 + 2


def test_draws_are_those_of_the_seed_and_the_update_in_every_process() -> None:
    model = Narrow(seed=5)
    assert [model.draw(update) for update in range(9)] == [draw(SPACE, update, 5, "gene") for update in range(9)]
    assert [Narrow(seed=5, how="architecture").draw(2)] == [draw(SPACE, 2, 5, "architecture")]
    assert [model.draw(update) for update in range(9)] != [Narrow(seed=6).draw(update) for update in range(9)]


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


def test_frozen_weights_are_taken_once_and_a_block_inside_does_not_run_them() -> None:
    model = Narrow()
    with model.using(of(4), freeze=True):
        before = model.selected
        assert model.active_subnet() is model.active_subnet() and model.selected == before
        with torch.no_grad():
            model.weight += 1
        assert model().item() == 6 + 4  # a slice of the weight; a mixture of experts would be the old one
        with model.using(of(1)):
            assert model().item() == 1 and model.selected == before + 1


def test_an_architecture_of_another_space_leaves_what_was_held() -> None:
    model = Narrow()
    with model.using(of(4), freeze=True):
        for freeze in (True, False):
            with pytest.raises(ArchitectureError), model.using(OUTSIDE, freeze=freeze):
                raise AssertionError("never entered")
            assert model.architecture == of(4) and model().item() == 6


def test_nothing_of_it_is_in_a_checkpoint_and_a_copy_has_its_own() -> None:
    model = Narrow()
    with model.using(of(4), freeze=True):
        assert list(model.state_dict()) == ["weight"]
    twin = copy.deepcopy(model)
    with model.using(of(4)):
        assert twin.held is None and twin().item() == sum(range(32))


def test_another_thread_runs_what_is_held() -> None:
    model = Narrow()
    with ThreadPoolExecutor(1) as pool, model.using(of(4)):
        assert pool.submit(model).result().item() == 6


def test_a_subclass_must_say_how_weights_are_selected() -> None:
    class Silent(SubnetHolder[Tensor], nn.Module):
        pass

    model = Silent()
    model.start(SPACE, 1, "gene")
    with pytest.raises(NotImplementedError):
        model.active_subnet()
