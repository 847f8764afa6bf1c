"""Every step of every recipe is a command that its program understands."""

from __future__ import annotations

import importlib
import sys
from typing import Any

import pytest
import typer
import typer.main

from examples.recipes.recipe import list_recipes, read_recipe
from nas_core.cli import COMMANDS
from nas_core.cli.strategies import StrategyOptions, strategy_maker
from tests.examples.recipes.conftest import words

STEPS = [(name, step) for name in list_recipes() for step in read_recipe(name).steps]
NAS_EXT = [pair for pair in STEPS if words(*pair)[0] == "nas-ext"]
FAIRSEQ = [pair for pair in STEPS if words(*pair)[0].startswith("fairseq-")]


def command_of(name: str) -> Any:
    """What ``nas-ext NAME`` is for its library of options."""
    module = importlib.import_module(next(command.module for command in COMMANDS if command.name == name))
    if hasattr(module, "app"):
        return typer.main.get_command(module.app)
    app = typer.Typer()
    app.command()(module.command)
    return typer.main.get_command(app)


@pytest.mark.parametrize(("name", "step"), NAS_EXT)
def test_nas_ext(name: str, step: str) -> None:
    _, first, *rest = words(name, step)
    command = command_of(first)
    if hasattr(command, "commands"):
        command, rest = command.commands[rest[0]], rest[1:]
    context = command.make_context(first, rest)
    if first == "search":
        names = StrategyOptions.__dataclass_fields__
        assert strategy_maker(context.params["strategy"], StrategyOptions(**{n: context.params[n] for n in names}))
    assert context.params


@pytest.mark.fairseq
@pytest.mark.parametrize(("name", "step"), FAIRSEQ)
def test_fairseq(name: str, step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("fairseq")
    from fairseq import options

    program, *rest = words(name, step)
    monkeypatch.setattr(sys, "argv", [program, *rest])
    training = program == "fairseq-train"
    parser = options.get_training_parser() if training else options.get_generation_parser()
    args = options.parse_args_and_arch(parser, input_args=rest)
    if training:
        assert args.max_update in (40_000, 50_000, 200_000)
        assert args.warmup_updates and args.label_smoothing == 0.1
    else:
        assert args.beam in (4, 5) and "--user-dir" in rest  # which leaves no sentence out


def test_averages_and_images_have_parsers_of_their_own() -> None:
    rest = [pair for pair in STEPS if pair not in NAS_EXT and pair not in FAIRSEQ]
    assert {words(*pair)[2] for pair in rest} == {"examples.recipes.average", "timm_ext.train"}
