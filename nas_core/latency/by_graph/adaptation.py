"""Adaptation of a latency model to another machine."""

from __future__ import annotations

from pathlib import Path

from nas_core.errors import ConfigError
from nas_core.latency.by_graph.base import GraphLatencyModel
from nas_core.latency.by_graph.dataset.collect import NetworkSetConfig, collect_networks
from nas_core.latency.by_graph.dataset.folder import load_networks, measured_on
from nas_core.latency.by_graph.dataset.runtimes import RUNTIMES
from nas_core.latency.by_graph.families.registry import chosen_families
from nas_core.latency.by_graph.predict import opened
from nas_core.latency.protocol import TimingConfig

NETWORKS = 13
"""Number of networks measured by default."""
_SEED = 1
"""Seed of the networks; other than the training networks'."""
_MAX_MS = 60.0
"""Slower networks are skipped, to save time."""


def adapted_model(
    folder: str | Path,
    model: GraphLatencyModel | str | Path | None = None,
    *,
    networks: int | None = NETWORKS,
    runtime: str | None = None,
) -> GraphLatencyModel:
    """Measure random networks on this machine, on one CPU thread, and adapt a latency model to them.

    Args:
        folder: folder of the measurements; an interrupted measurement is continued.
        model: latency model of another machine, or its file; None: the shipped model.
        networks: number of networks, at least ten; None: use a folder that ``nas-ext latency dataset`` wrote.
        runtime: runtime of the latencies; default: the model's.

    Raises:
        ConfigError: the folder has other measurements, or does not name their machine.
        DataError: there are fewer than ten measured networks.
    """
    model = opened(model)
    target = runtime or str(model.info.get("runtime", RUNTIMES[0]))
    if networks is not None:
        timing = TimingConfig(warmup=1, repeats=3, clock="cpu")
        config = NetworkSetConfig(runtimes=(target,), seed=_SEED, max_ms=_MAX_MS)
        collect_networks(folder, chosen_families(), networks, timing, config)
    measured = load_networks(folder, target)
    machine = measured_on(folder)
    if machine is None:
        raise ConfigError(
            f"{folder} does not name the machine of its measurements; give a folder that 'nas-ext latency dataset'"
            " wrote"
        )
    model.adapt(measured, machine).info["runtime"] = target
    return model
