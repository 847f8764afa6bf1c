"""``nas-ext search``: search for subnets of a supernet within limits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nas_core.cli import EXIT_INTERRUPTED
from nas_core.cli.options import parameters_of, settings_help, with_options
from nas_core.errors import ConfigError
from nas_core.files.reading import read_yaml
from nas_core.jobs import JobsConfig
from nas_core.options import config_from, options_of, read_pairs
from nas_core.search.checkpoint import SearchSettings, search_checkpoint
from nas_core.search.registry import STRATEGIES

if TYPE_CHECKING:
    from nas_core.search import SearchResult


def _search(
    config: Annotated[
        Path | None, typer.Option(help="YAML file of these options; options on the command line have priority.")
    ] = None,
    *,
    options: Mapping[str, Any],
) -> None:
    settings = _settings(config, options)
    try:
        result = search_checkpoint(settings, log=lambda line: typer.echo(line, err=True))
    except KeyboardInterrupt:
        journal = settings.out / "journal.jsonl"
        evaluations = journal.read_bytes().count(b"\n") if journal.exists() else 0
        typer.echo(
            f"interrupted: {evaluations} evaluations are kept in {settings.out}; the same command continues", err=True
        )
        raise typer.Exit(EXIT_INTERRUPTED) from None
    _report(settings, result)


def _settings(config: Path | None, options: Mapping[str, Any]) -> SearchSettings:
    settings = read_yaml(config) if config else {}
    if not isinstance(settings, dict):
        kind = type(settings).__name__
        raise ConfigError(f"{config} contains a {kind}; expected options by name, such as strategy: random")
    groups = [option.name for option in options_of(SearchSettings) if option.grouped]
    for name, value in options.items():
        value = read_pairs(name, value) if name in groups else value
        nested = isinstance(value, dict) and isinstance(settings.get(name), dict)
        settings[name] = {**settings[name], **value} if nested else value
    return config_from(SearchSettings, settings, "option")


def _report(settings: SearchSettings, result: SearchResult) -> None:
    from nas_core.report.run import finalists_text, read_run

    typer.echo(finalists_text(read_run(settings.out)))
    total = result.evaluations + result.cache_hits
    typer.echo(
        f"{result.evaluations} architectures evaluated ({result.replayed} of them before),"
        f" {result.cache_hits} evaluations saved by the cache ({result.cache_hits / total:.0%}),"
        f" {len(result.archive)} on the Pareto front:"
        f" {settings.out}"
    )


def make_command() -> Callable[..., None]:
    """Return the command, whose help lists the options of all strategies."""
    doc = "Search for subnets of a supernet within limits; the same command resumes an interrupted search."
    sections = [
        settings_help(f"Strategy {name}, {strategy.purpose}; --set NAME=VALUE", strategy.config_class)
        for name, strategy in STRATEGIES.items()
    ]
    jobs = settings_help("Jobs of submitit; --job NAME=VALUE, such as slurm.constraint=a100", JobsConfig)
    return with_options(_search, {"options": parameters_of(SearchSettings)}, "\n\n".join([doc, *sections, jobs]))
