"""Adaptation of a latency model to another machine."""

from __future__ import annotations

import copy
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


def adapted_model(
    folder: str | Path,
    model: GraphLatencyModel | str | Path | None = None,
    *,
    networks: int | None = NETWORKS,
    runtime: str | None = None,
) -> GraphLatencyModel:
    """Measure random networks on this machine, on one CPU thread, and return a latency model adapted to them.

    Example:
        >>> model = adapted_model("here")
        >>> predict_module_latency(timm.create_model("resnet18"), torch.zeros(1, 3, 224, 224), model)

    Args:
        folder: folder of the measurements; an interrupted measurement is continued.
        model: latency model of another machine, or its file; None: the shipped model for onnxruntime.
        networks: number of networks, at least ten; slow networks are skipped and replaced. None: use a folder that
            ``nas-ext latency dataset`` wrote.
        runtime: runtime of the latencies; default: the model's.

    Raises:
        ConfigError: the folder has other measurements, or does not name their machine.
        DataError: there are fewer than ten measured networks.
    """
    adapted = copy.deepcopy(opened(model))
    target = runtime or str(adapted.info.get("runtime", RUNTIMES[0]))
    if networks is not None:
        timing = TimingConfig(warmup=1, repeats=3, clock="cpu")
        config = NetworkSetConfig(runtimes=(target,), seed=_SEED)
        skipped = 0
        while skipped <= networks:
            rows = collect_networks(folder, chosen_families(), networks + skipped, timing, config).rows
            errors = sum("error" in row for row in rows)
            if len(rows) - errors >= networks:
                break
            skipped = errors
    measured = load_networks(folder, target)
    machine = measured_on(folder)
    if machine is None:
        raise ConfigError(
            f"{folder} does not name the machine of its measurements; give a folder that 'nas-ext latency dataset'"
            " wrote"
        )
    adapted.adapt(measured, machine).info["runtime"] = target
    return adapted
