"""Shared evaluations of a search on several machines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Protocol

from nas_core.errors import ConfigError, MissingHostError
from nas_core.jobs import Failure
from nas_core.optional import install_line
from nas_core.space import Architecture, SearchSpace

GROUP = "nas_ext.shared_searches"
"""Entry points of shared evaluations; ``optuna`` is used."""
NAME = "optuna"


class Shared(Protocol):
    """Evaluations that several processes share."""

    together: int
    """Architectures in one batch."""

    def __call__(self, architectures: Sequence[Architecture], /) -> Iterable[Mapping[str, Any] | Failure]: ...


def check_shared(storage: str | None, study: str | None, executor: str, device: str) -> None:
    if storage is None and study is None:
        return
    if storage is None or study is None:
        given, missing = ("study", "storage") if storage is None else ("storage", "study")
        raise ConfigError(f"{given} needs {missing}; a search of several machines is known by both")
    if executor != "local" or "," in device:
        raise ConfigError(
            f"storage is instead of {'executor ' + executor if executor != 'local' else 'several devices'}; start the"
            " same command once for each job or device, each with an out folder of its own"
        )


def shared_evaluations(
    storage: str,
    study: str,
    space: SearchSpace,
    evaluate: Callable[[Architecture], Mapping[str, Any]],
    metrics: Sequence[str],
    settings: Mapping[str, Any],
    stale_s: float,
) -> Shared:
    """Return evaluations that are shared by all processes of a study.

    Of the path of the data in ``settings``, only the name of the last folder is compared.
    """
    point = next(iter(entry_points(group=GROUP, name=NAME)), None)
    if point is None:
        raise MissingHostError(f"storage needs the adapter for Optuna: run {install_line(NAME)}")
    make: Callable[..., Shared] = point.load()
    data = settings.get("data")
    same = {**settings, **({"data": Path(data).name} if data else {})}
    return make(storage, study, space, evaluate, metrics, same, stale_s=stale_s)
