"""Limits as they are typed: shares of the largest network's latency, and the workload that memory is counted at."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import typer

from nas_core.cli.workload import task_settings, workload_settings
from nas_core.errors import ConfigError
from nas_core.latency.by_genes import GeneLatencyModel
from nas_core.models.kind import kind_of, workload_of
from nas_core.supernet.host import Supernet

__all__ = ["limits_ms", "workload_held_at"]


def limits_ms(model: GeneLatencyModel, limits: Sequence[float] | None, shares: Sequence[float] | None) -> list[float]:
    """All limits in ms; what a share comes to is told. The largest network is within a share of 1."""
    found = list(limits or ())
    for share in shares or ():
        whole = float(model.predict([model.space.largest()])[0])
        found.append(math.ceil(share * whole * 1e4) / 1e4)
        typer.echo(f"--limit-share {share:g}: {found[-1]:.4g} ms, of {whole:.4g} for the largest network", err=True)
    return list(dict.fromkeys(found))


def workload_held_at(
    supernet: Supernet, model: GeneLatencyModel | None, typed: Sequence[str], limited: bool
) -> dict[str, Any] | None:
    """The workload at which memory is counted: what the supernet is for, such as the sizes of its vocabularies, else as
    the latency model was measured, but for what is typed.

    Raises:
        ConfigError: settings without a limit, or that the workload does not have.
    """
    if not limited:
        if typed:
            raise ConfigError(
                "--workload says at what --max-memory-mb and --max-cache-mb are counted; give one of them"
            )
        return None
    kind = kind_of(supernet.space)
    measured = workload_of((model.info.get("settings") or {}).get("workload") or {}) if model else None
    before = {**(asdict(measured[1]) if measured else {}), **task_settings(kind, supernet.task)}
    return workload_settings(kind, typed, before, "--workload")
