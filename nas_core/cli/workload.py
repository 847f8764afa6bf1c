"""The workload of a network as ``NAME=VALUE``: what is run while the clock runs, or memory is counted at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from nas_core.cli.options import settings_help
from nas_core.errors import ConfigError, unknown_choice
from nas_core.models.kind import KINDS, ModelKind
from nas_core.options import options_of, read_pairs, read_texts
from nas_core.supernet.host import vocabularies

Workload = Annotated[
    list[str] | None,
    typer.Option("--workload", metavar="NAME=VALUE", help="A setting of the workload; repeatable."),
]


def workload_help() -> str:
    """Return a part of a command's help: the settings of the workloads of all kinds of network."""
    return "\n\n".join(
        settings_help(f"Workload of {name} networks; --workload NAME=VALUE", kind.workload_config)
        for name, kind in KINDS.items()
    )


def workload_config(
    kind: ModelKind, typed: Sequence[str], task: Mapping[str, Any] | None = None, data: Path | None = None
) -> Any:
    """Return the settings of the workload of a kind of network.

    Args:
        typed: ``NAME=VALUE``; ``vocab`` stands for both vocabularies of translation.
        task: :attr:`nas_core.supernet.host.Supernet.task`, which gives what is not typed.
        data: a folder whose dictionaries say the sizes of vocabularies.

    Raises:
        ConfigError, UnknownChoiceError: a setting that this kind's workload does not have, a value of another type, or
            two that say the same.
    """
    settings = read_pairs("workload", typed)
    own = [option.name for option in options_of(kind.workload_config)]
    what = f"setting of the workload of {kind.name} networks"
    if data is not None:
        if not kind.vocabularies:
            raise unknown_choice(what, "data", own)
        if settings.keys() & {"vocab", *kind.vocabularies}:
            raise ConfigError(f"give --data or the sizes {', '.join(('vocab', *kind.vocabularies))}, not both")
        settings |= zip(kind.vocabularies, vocabularies(data)[-len(kind.vocabularies) :], strict=True)
    if "vocab" not in own and kind.vocabularies and "vocab" in settings:
        settings = {**dict.fromkeys(kind.vocabularies, settings.pop("vocab")), **settings}
    return kind.config({**kind.of_task(task or {}), **read_texts(kind.workload_config, settings)})
