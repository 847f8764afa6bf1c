"""Search by several machines through an Optuna storage."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from nas_core.adapters import adapter_parts
from nas_core.errors import ConfigError, MissingHostError
from nas_core.optional import install_line
from nas_core.registry import import_object
from nas_core.space import Architecture, SearchSpace

NAME = "optuna"
"""Adapter that implements the shared search."""


def check_shared(storage: str | None, study: str | None, executor: str, device: str) -> None:
    if storage is None and study is None:
        return
    if storage is None or study is None:
        present, missing = ("study", "storage") if storage is None else ("storage", "study")
        raise ConfigError(f"option {present} needs option {missing}; give both to search on several machines")
    if executor != "local" or "," in device:
        raise ConfigError(
            f"option storage cannot be combined with"
            f" {'executor ' + executor if executor != 'local' else 'several devices'}; start the same command once per"
            " job or device, each time with another out folder"
        )


def shared_evaluations(
    storage: str,
    study: str,
    space: SearchSpace,
    evaluate: Callable[[Architecture], Mapping[str, Any]],
    metrics: Sequence[str],
    settings: Mapping[str, Any],
    stale_s: float,
) -> Any:
    """Return an ``evaluate_many`` of :func:`nas_core.search.search` that shares its results in an Optuna study.

    Args:
        settings: settings of the search, equal in all processes; of the path ``data``, only the last folder counts.
        stale_s: seconds without a heartbeat after which a process counts as lost.
    """
    target = adapter_parts("shared_search").get(NAME)
    if target is None:
        raise MissingHostError(f"option storage needs the Optuna adapter; run {install_line(NAME)}")
    make = import_object("storage: the adapter", target)
    data = settings.get("data")
    same = {**settings, **({"data": Path(data).name} if data else {})}
    return make(storage, study, space, evaluate, metrics, same, stale_s=stale_s)
