"""Command-line options generated from dataclasses of settings."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from nas_core.errors import ConfigError, unknown_choice
from nas_core.models.kind import NETWORK_KINDS, ModelKind
from nas_core.options import Option, options_of, read_pairs
from nas_core.supernet.host import vocabularies

Workload = Annotated[
    list[str] | None,
    typer.Option("--workload", metavar="NAME=VALUE", help="Input size, such as batch=1; repeatable."),
]


def parameters_of(config_class: type[Any]) -> list[inspect.Parameter]:
    """Return a command-line option with default None for each field of a dataclass."""
    return [_parameter(option) for option in options_of(config_class)]


def settings_help(title: str, config_class: type[Any]) -> str:
    lines = [f"  {option.name}: {option.help_text}" for option in options_of(config_class)]
    return "\n".join([f"\b\n{title}:", *(lines or ["  none"])])


def with_options(
    command: Callable[..., None], option_groups: Mapping[str, Sequence[inspect.Parameter]], doc: str
) -> Callable[..., None]:
    """Return a command with additional options.

    Args:
        option_groups: argument of the command -> options, whose values it receives as a dictionary.
        doc: help text of the command.
    """
    signature = inspect.signature(command, eval_str=True)
    plain = [parameter for parameter in signature.parameters.values() if parameter.name not in option_groups]

    @functools.wraps(command)
    def wrapper(**values: Any) -> None:
        mappings = {
            name: {option.name: value for option in options if (value := values.pop(option.name)) not in (None, [], ())}
            for name, options in option_groups.items()
        }
        command(**values, **mappings)

    parameters_of_all = [*plain, *(parameter for parameters in option_groups.values() for parameter in parameters)]
    keyword_only = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in parameters_of_all]
    del wrapper.__wrapped__  # its annotations would be read instead
    wrapper.__signature__ = signature.replace(parameters=keyword_only)  # type: ignore[attr-defined]
    wrapper.__annotations__ = {parameter.name: parameter.annotation for parameter in keyword_only}
    wrapper.__doc__ = doc
    return wrapper


def _parameter(option: Option) -> inspect.Parameter:
    kind: Any = str if option.grouped else option.kind
    repeatable = option.multiple or option.grouped
    extra: dict[str, Any] = {"metavar": "NAME=VALUE"} if option.grouped else {}
    annotation = Annotated[  # type: ignore[valid-type]
        list[kind] | None if repeatable else kind | None,
        typer.Option(help=f"{option.help_text.rstrip('.')}.", **extra),
    ]
    return inspect.Parameter(option.name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


def workload_help() -> str:
    return "\n\n".join(
        settings_help(f"Workload of {name} networks; --workload NAME=VALUE", kind.workload_config)
        for name, kind in NETWORK_KINDS.items()
    )


def workload_config(
    kind: ModelKind, pairs: Sequence[str], task: Mapping[str, Any] | None = None, data: Path | None = None
) -> Any:
    """Return the input sizes for which a network is measured.

    Args:
        pairs: ``NAME=VALUE`` pairs; ``vocab`` sets both vocabularies of translation.
        task: default sizes, see :attr:`nas_core.supernet.host.Supernet.task`.
        data: folder of dictionaries that determine the vocabulary sizes.

    Raises:
        ConfigError: a setting is unknown, or both ``data`` and vocabulary sizes are given.
    """
    settings = read_pairs("workload", pairs)
    names = [option.name for option in options_of(kind.workload_config)]
    description = f"setting of the workload of {kind.name} networks"
    if data is not None:
        if not kind.vocabularies:
            raise unknown_choice(description, "data", names)
        if settings.keys() & {"vocab", *kind.vocabularies}:
            raise ConfigError(
                f"got --data and a vocabulary size; give --data or {', '.join(('vocab', *kind.vocabularies))}, not both"
            )
        settings |= zip(kind.vocabularies, vocabularies(data)[-len(kind.vocabularies) :], strict=True)
    if "vocab" not in names and kind.vocabularies and "vocab" in settings:
        settings = {**dict.fromkeys(kind.vocabularies, settings.pop("vocab")), **settings}
    return kind.config({**kind.task_settings(task or {}), **settings})
