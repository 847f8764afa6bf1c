"""Whether a data set still holds: some of its networks are measured a second time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from nas_core.errors import ConfigError, DataError
from nas_core.latency.families import Family
from nas_core.latency.machine import describe_machine
from nas_core.latency.network_set.collect import references
from nas_core.latency.network_set.folder import NetworkSet
from nas_core.latency.network_set.plan import PlannedNetwork
from nas_core.latency.network_set.runtimes import check_runtimes
from nas_core.latency.network_set.visited import NetworkSetConfig, VisitedNetwork
from nas_core.latency.protocol import TimingConfig

__all__ = ["measured_again"]


def measured_again(
    path: str | Path, families: Sequence[Family], count: int, progress: bool | None = None
) -> dict[str, NDArray[np.float64]]:
    """By runtime ``(count,)`` second latencies of networks from all over the folder, as multiples of the first ones;
    both are relative to the reference. The settings are those of the folder, to which nothing is written.

    Values around one, but far from it, are what other jobs or another state of the machine did to either measurement.

    Args:
        families: those of the networks, at least.
        progress: a bar on stderr; None shows it on a terminal only.

    Raises:
        ConfigError: it was measured on another machine, or a family is missing. DataError: no such folder, a damaged
            one, or one with fewer networks.
    """
    found = NetworkSet.read(path)
    config, timing = _settings(found)
    machine = {**describe_machine(timing.device, timing.threads), **check_runtimes(config.runtimes, timing.device)}
    found.must_match(found.settings, machine)
    rows = found.measured(config.runtimes[0])
    if count > len(rows):
        raise DataError(f"{path} holds {len(rows)} measured networks, {count} were asked for")
    known = {family.name: family for family in families}
    chosen = [rows[i] for i in np.linspace(0, len(rows) - 1, count).round().astype(int)]
    if absent := sorted({row["family"] for row in chosen} - known.keys()):
        raise ConfigError(f"{path} holds networks of families {', '.join(absent)}, which are not installed here")
    planned = [PlannedNetwork(row["name"], known[row["family"]], row["settings"]) for row in chosen]
    reference = references(config, timing)
    second: list[dict[str, Any]] = []
    hidden = None if progress is None else not progress
    with tqdm(desc="measuring again", total=count, unit="network", disable=hidden) as shown:
        for first in range(0, count, config.together):
            together = [VisitedNetwork(one, config, timing) for one in planned[first : first + config.together]]
            for _ in range(config.visits):
                for network in together:
                    network.visit(reference)
            second += [network.row(found.reference_ms)["measured"] for network in together]
            shown.update(len(together))
    return {
        name: np.array(
            [b[name]["relative"] / a["measured"][name]["relative"] for a, b in zip(chosen, second, strict=True)]
        )
        for name in config.runtimes
    }


def _settings(found: NetworkSet) -> tuple[NetworkSetConfig, TimingConfig]:
    try:
        given = {field.name: found.settings[field.name] for field in fields(NetworkSetConfig)}
        return NetworkSetConfig(**{**given, "runtimes": tuple(given["runtimes"])}), TimingConfig(
            **found.settings["timing"]
        )
    except (KeyError, TypeError) as error:
        raise DataError(f"the settings of {found.path} lack or garble {error}; restore its first line") from None
