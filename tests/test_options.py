"""Options derived from dataclasses of settings: for argparse, for YAML, and for typer's commands."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from nas_core.checks import Range, check_fields
from nas_core.cli.options import parameters_of, settings_help, with_options
from nas_core.errors import ConfigError, UnknownChoiceError
from nas_core.options import (
    add_options,
    arguments_of,
    config_from,
    flag_of,
    options_of,
    read_options,
    read_pairs,
)


@dataclass(frozen=True, kw_only=True)
class Inner:
    """Settings of a part."""

    depth: int = 2
    """Layers."""

    def __post_init__(self) -> None:
        check_fields(self, ranges={"depth": Range(1)})


@dataclass(frozen=True, kw_only=True)
class Base:
    """Settings that another class adds to."""

    count: int = 3
    """How many, see :func:`~nas_core.options.options_of`;
    ``0`` means none."""


@dataclass(frozen=True, kw_only=True)
class Toy(Base):
    """One field of each kind."""

    data: Path
    """Where it lies."""
    out: Path | None = None
    """Where it goes; default: nowhere."""
    share: float = 0.5
    """Of them, 5 % at least."""
    how: str = field(default="fast", metadata={"choices": ("fast", "slow")})
    """In which way."""
    strict: bool = False
    """Whether errors end it."""
    warm: bool = True
    """Whether it begins warm."""
    betas: tuple[float, ...] = ()
    """Two numbers."""
    kinds: tuple[str, ...] = field(default=(), metadata={"choices": ("softmax", "linear")})
    """Some of them."""
    part: Inner = field(default_factory=Inner)
    """Of the part."""
    more: Mapping[str, str] = field(default_factory=dict)
    """Anything else."""


def parsed(*arguments: str) -> Toy:
    parser = argparse.ArgumentParser()
    add_options(parser, Toy)
    return read_options(Toy, parser.parse_args(arguments))


def test_a_field_is_an_option() -> None:
    options = {option.name: option for option in options_of(Toy)}
    assert list(options) == ["count", "data", "out", "share", "how", "strict", "warm", "betas", "kinds", "part", "more"]
    count = options["count"]
    assert (count.flag, count.kind, count.default) == ("--count", int, 3)
    assert count.help == "How many, see nas_core.options.options_of; 0 means none."
    assert count.help_text == "How many, see nas_core.options.options_of; 0 means none (default: 3)"
    assert options["out"].help_text == "Where it goes; default: nowhere"
    assert options["how"].help_text == "In which way; one of fast, slow (default: fast)"
    assert options["data"].default is MISSING and options["out"].kind is Path
    assert options["betas"].multiple and options["part"].grouped and options["more"].grouped
    assert flag_of("per_round") == "--per-round"


def test_a_command_line_of_argparse(capsys: pytest.CaptureFixture[str]) -> None:
    config = parsed("--data", "d", "--count", "7", "--strict", "--no-warm", "--betas", "0.9", "1", "--part", "depth=4",
                   "--more", "a=1", "--more", "b=x=y")  # fmt: skip
    expected = Toy(
        data=Path("d"), count=7, strict=True, warm=False, betas=(0.9, 1.0), part=Inner(depth=4),
        more={"a": "1", "b": "x=y"},
    )  # fmt: skip
    assert config == expected and parsed("--data", "d") == Toy(data=Path("d"))
    with pytest.raises(SystemExit):
        parsed("--help")
    output = " ".join(capsys.readouterr().out.split())
    assert "--share FLOAT Of them, 5 % at least (default: 0.5)" in output
    with pytest.raises(SystemExit):
        parsed("--count", "7")
    for wrong, message in [
        (["--how", "fat"], "unknown how 'fat': expected one of fast, slow"),
        (["--share", "nan"], "share is nan; expected a number"),
        (["--part", "depth"], "expected NAME=VALUE"),
        (["--part", "depth=two"], "depth is 'two'; expected a whole number"),
        (["--part", "width=2"], "unknown setting of part 'width'"),
    ]:
        with pytest.raises((ConfigError, UnknownChoiceError), match=message):
            parsed("--data", "d", *wrong)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"cuont": 3}, "unknown option of toys 'cuont': .* Did you mean 'count'"),
        ({"count": "3.5"}, "count is '3.5'; expected a whole number"),
        ({"count": True}, "count is True; expected a whole number"),
        ({"share": "half"}, "share is 'half'; expected a number"),
        ({"strict": "so"}, "strict is 'so'; expected true or false"),
        ({"betas": 0.9}, "betas is 0.9; expected a list"),
        ({"betas": ["x"]}, "betas is 'x'; expected a number"),
        ({"kinds": ["linear", "softmix"]}, "unknown kinds 'softmix': .* Did you mean 'softmax'"),
        ({"part": 3}, "part is 3; expected settings by name"),
        ({"part": {"depth": 0}}, "depth is 0; expected a whole number from 1 on"),
        ({"out": 3}, "out is 3; expected a path"),
        ({"data": None}, "option of toys 'data' is missing; give it"),
    ],
)
def test_settings_of_yaml_are_checked(given: dict[str, Any], said: str) -> None:
    with pytest.raises((ConfigError, UnknownChoiceError), match=said) as caught:
        config_from(Toy, {"data": "d", **given}, "option of toys")
    assert "\n" not in str(caught.value)


def test_settings_of_yaml() -> None:
    settings = {"data": "d", "count": None, "share": 1, "part": {"depth": 3}, "betas": [0, 1], "more": {"a": "b"}}
    config = config_from(Toy, settings, "option")
    assert config == Toy(data=Path("d"), share=1.0, part=Inner(depth=3), betas=(0.0, 1.0), more={"a": "b"})
    assert config_from(Toy, {"data": "d", "part": Inner(depth=9)}, "option").part.depth == 9


def test_groups_by_names_with_dots_and_values_given_again() -> None:
    result = read_pairs("set", ["count=4", "part.depth=3", "betas=0.5", "betas=1", "more.a=x=y"])
    assert result == {"count": "4", "part": {"depth": "3"}, "betas": ["0.5", "1"], "more": {"a": "x=y"}}
    config = config_from(Toy, {"data": "d", **result}, "option")
    assert config == Toy(data=Path("d"), count=4, part=Inner(depth=3), betas=(0.5, 1.0), more={"a": "x=y"})
    for wrong in (["count"], ["=4"], ["part.=4"], ["part=1", "part.depth=2"]):
        with pytest.raises(ConfigError, match="set is "):
            read_pairs("set", wrong)


@pytest.mark.parametrize(
    "settings",
    [
        Toy(data=Path("here")),
        Toy(data=Path("here"), out=Path("there"), count=0, share=0.25, how="slow", strict=True, warm=False),
        Toy(data=Path("here"), betas=(0.9, 0.98), part=Inner(depth=4), more={"a": "1", "b": "x y"}),
    ],
)
def test_settings_as_arguments_are_read_as_equal_settings(settings: Toy) -> None:
    assert parsed(*arguments_of(settings)) == settings
    assert arguments_of(Toy(data=Path("here"))) == ["--data", "here"]


def test_a_command_of_typer() -> None:
    results: list[Any] = []

    def command(name: str, size: int = 1, *, settings: Mapping[str, Any], others: Mapping[str, Any]) -> None:
        results.append((name, size, dict(settings), dict(others)))

    further = {"settings": parameters_of(Toy), "others": parameters_of(Inner)}
    app = typer.Typer(rich_markup_mode=None)
    app.command()(with_options(command, further, "What it does."))
    run = CliRunner().invoke
    assert (
        run(app, ["x", "--size", "2", "--count", "4", "--no-strict", "--part", "depth=2", "--betas", "1"]).exit_code
        == 0
    )
    assert run(app, ["y", "--depth", "3"]).exit_code == 0
    assert results == [
        ("x", 2, {"count": 4, "strict": False, "part": ["depth=2"], "betas": [1.0]}, {}),
        ("y", 1, {}, {"depth": 3}),
    ]
    help_text = " ".join(run(app, ["--help"], env={"COLUMNS": "200"}).output.split())
    assert "What it does." in help_text and "In which way; one of fast, slow (default: fast)." in help_text
    assert "Layers (default: 2)." in help_text
    assert settings_help("Parts", Inner) == "\b\nParts:\n  depth: Layers (default: 2)"
    assert run(app, ["x", "--count", "many"]).exit_code == 2
