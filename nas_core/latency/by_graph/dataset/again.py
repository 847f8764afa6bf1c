"""Whether a data set still holds: some of its networks are measured a second time, and kept beside the first."""

from __future__ import annotations

import logging
import math
import os
import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nas_core.errors import ConfigError, DataError
from nas_core.files import append_jsonl, read_jsonl
from nas_core.latency.by_graph.dataset.collect import alone, references, visited_together
from nas_core.latency.by_graph.dataset.folder import NetworkSet
from nas_core.latency.by_graph.dataset.plan import PlannedNetwork
from nas_core.latency.by_graph.dataset.runtimes import check_runtimes
from nas_core.latency.by_graph.dataset.visited import NetworkSetConfig
from nas_core.latency.by_graph.families.family import Family
from nas_core.latency.machine import describe_machine
from nas_core.latency.timing import TimingConfig
from nas_core.progress import counted

AGAIN = "again.jsonl"
"""File of second measurements, beside the journal."""

_log = logging.getLogger(__name__)


def measured_again(
    path: str | Path, families: Sequence[Family], count: int, progress: bool | None = None, keep: bool = False
) -> dict[str, NDArray[np.float64]]:
    """By runtime second latencies of so many networks from all over the folder, as multiples of the first ones; both
    are relative to the reference. The settings are those of the folder. A network that cannot be measured now is named
    in a warning and left out.

    Values around one, but far from it, are what other jobs or another state of the machine did to either measurement.

    Args:
        families: those of the networks, at least.
        progress: whether to report on stderr; None shows a bar on a terminal, and a line a minute elsewhere.
        keep: add the second measurements to ``again.jsonl`` in the folder, for its report; they are never learned.

    Raises:
        ConfigError: it was published, or measured on another machine, another process measures it now, or a family is
        missing.
        DataError: no such folder, a damaged one, one with fewer networks, or one of which no network can be measured.
    """
    found = NetworkSet.read(path)
    if source := found.settings.get("source"):
        raise ConfigError(f"{path} has latencies that {source} published; measure a folder of your own again")
    config, timing = _settings(found)
    machine = {
        **describe_machine(timing.device, timing.threads),
        **check_runtimes(config.runtimes, timing.checked_here()),
    }
    found.must_match(found.settings, machine)
    rows = found.measured(config.runtimes[0])
    if count > len(rows):
        raise DataError(f"{path} holds {len(rows)} measured networks, {count} were asked for")
    known = {family.name: family for family in families}
    chosen = [rows[i] for i in np.linspace(0, len(rows) - 1, count).round().astype(int)]
    if absent := sorted({row["family"] for row in chosen} - known.keys()):
        raise ConfigError(
            f"{path} holds networks of families {', '.join(absent)}, which are missing here; install"
            " their adapter, or name them with --families"
        )
    planned = [PlannedNetwork(row["name"], known[row["family"]], row["settings"]) for row in chosen]
    ratios: dict[str, list[float]] = {name: [] for name in config.runtimes}
    reason = ""
    writable = os.access(found.path, os.W_OK)
    with (
        alone(found.path) if writable else nullcontext(),  # else nobody adds to it either
        counted("measuring again", count, "network", progress) as advance,
    ):
        reference = references(config, timing)
        for first in range(0, count, config.together):
            ready, errors = visited_together(planned[first : first + config.together], reference, config, timing)
            for row in chosen[first : first + config.together]:
                if reason := errors.get(row["name"], ""):
                    _log.warning("%s cannot be measured again: %s", row["name"], reason)
                    continue
                measured = ready[row["name"]].row(found.reference_ms)["measured"]
                if keep and writable:
                    append_jsonl(found.path / AGAIN, {"name": row["name"], "time": time.time(), "measured": measured})
                for name, ratio in ratios.items():
                    ratio.append(measured[name]["relative"] / row["measured"][name]["relative"])
                advance(1)
    if not ratios[config.runtimes[0]]:
        raise DataError(f"no network of {path} can be measured again, the last one because of: {reason}")
    return {name: np.array(ratio) for name, ratio in ratios.items()}


def second_measurements(found: NetworkSet, runtime: str) -> dict[str, dict[str, Any]]:
    """By name the last kept second measurement of each network of the folder, with all that its row has under
    ``measured``; empty if none was kept.

    Raises:
        DataError: the file of them is damaged.
    """
    path = found.path / AGAIN
    names = {row["name"] for row in found.rows if "error" not in row}
    kept: dict[str, dict[str, Any]] = {}
    for number, line in enumerate(read_jsonl(path) if path.exists() else [], start=1):
        try:
            times = dict(line["measured"][runtime])
            if not all(0 < float(times[name]) < math.inf for name in ("relative", "raw_ms")):
                raise ValueError
            if line["name"] in names:
                kept[line["name"]] = times
        except (KeyError, TypeError, ValueError):
            raise DataError(f"{path}, line {number} is no second measurement in {runtime}; remove the line") from None
    return kept


def _settings(found: NetworkSet) -> tuple[NetworkSetConfig, TimingConfig]:
    try:
        given = {field.name: found.settings[field.name] for field in fields(NetworkSetConfig)}
        config = NetworkSetConfig(**{**given, "runtimes": tuple(given["runtimes"])})
        if not all(isinstance(number, int) for number in (config.visits, config.together)):
            raise TypeError("visits or together")
        if set(config.runtimes) != found.reference_ms.keys():
            raise KeyError("reference_ms")
        return config, TimingConfig(**found.settings["timing"])
    except (AttributeError, ConfigError, KeyError, TypeError, ValueError) as error:
        raise DataError(f"the settings of {found.path} lack or garble {error}; restore its first line") from None
