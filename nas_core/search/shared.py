"""Evaluations of a search shared by several machines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from nas_core.adapters import adapter_parts
from nas_core.errors import ConfigError, MissingHostError
from nas_core.jobs import Failure
from nas_core.optional import install_line
from nas_core.registry import import_object
from nas_core.space import Architecture, SearchSpace

NAME = "optuna"
"""Adapter whose ``shared_search`` is used."""


class Shared(Protocol):
    """Evaluations shared by several processes."""

    together: int
    """Architectures per batch."""

    def __call__(self, architectures: Sequence[Architecture], /) -> Iterable[Mapping[str, Any] | Failure]: ...


def check_shared(storage: str | None, study: str | None, executor: str, device: str) -> None:
    if storage is None and study is None:
        return
    if storage is None or study is None:
        present, missing = ("study", "storage") if storage is None else ("storage", "study")
        raise ConfigError(f"{present} needs {missing}; give both to search on several machines")
    if executor != "local" or "," in device:
        raise ConfigError(
            f"storage excludes {'executor ' + executor if executor != 'local' else 'several devices'}; start the same"
            " command once for each job or device, each with another out folder"
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
    """Return evaluations shared by all processes of a study.

    Only the last folder name of the data path in ``settings`` is compared.
    """
    target = adapter_parts("shared_search").get(NAME)
    if target is None:
        raise MissingHostError(f"storage needs the adapter for Optuna: run {install_line(NAME)}")
    make: Callable[..., Shared] = import_object("storage: the adapter", target)
    data = settings.get("data")
    same = {**settings, **({"data": Path(data).name} if data else {})}
    return make(storage, study, space, evaluate, metrics, same, stale_s=stale_s)
