"""Latency measurement of the best architectures of a search."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from nas_core.errors import ConfigError
from nas_core.latency import measure
from nas_core.latency.by_genes.base import GeneLatencyModel
from nas_core.latency.by_genes.collect import reference_architecture
from nas_core.latency.machine import describe_machine
from nas_core.latency.protocol import timing_of
from nas_core.models.kind import workload_of
from nas_core.space import Architecture

_log = logging.getLogger(__name__)


def remeasure(
    architectures: Sequence[Architecture], model: GeneLatencyModel, task: Mapping[str, Any] | None = None
) -> list[dict[str, Any]]:
    """Measure architectures with the settings of a latency model's training data.

    ``latency_ms`` is corrected for drift of the machine's speed; on another machine than the model's it equals the
    measured ``raw_ms``.

    Args:
        task: the supernet's vocabulary sizes or number of classes, compared with those settings.

    Returns:
        One dictionary per architecture; empty, with a warning, if the settings cannot be used on this machine.
    """
    settings = model.info.get("settings") or {}
    workload = workload_of(settings.get("workload") or {})
    if workload is None:
        _log.warning("the latency model lacks the settings of its measurements; finalists are not measured")
        return [{} for _ in architectures]
    kind, config = workload
    try:
        timing = timing_of(settings).checked_here()
    except ConfigError as error:
        _log.warning("finalists are not measured; the latency model's settings cannot be used here: %s", error)
        return [{} for _ in architectures]
    for name, value in {**asdict(config), **kind.workload_to_dict(config)}.items():
        if task and name in task and task[name] != value:
            _log.warning("finalists are measured with %s %s, but the supernet has %s", name, value, task[name])
    same_machine = describe_machine(timing.device, timing.threads) == model.info.get("machine")
    if not same_machine:
        _log.warning(
            "the latency model comes from another machine or other software versions; measured times are reported"
            " without correction for drift of the machine's speed"
        )
    reference = kind.workload(model.space, reference_architecture(model.space), config, timing.device)
    records = []
    for architecture in architectures:
        timed = measure(kind.workload(model.space, architecture, config, timing.device), reference, timing)
        latency_ms = timed.corrected_ms(float(model.info["reference_ms"])) if same_machine else timed.raw_ms
        raw = {"raw_ms": timed.raw_ms, "std_ms": timed.std_ms, "mad_ms": timed.mad_ms}
        record: dict[str, Any] = {
            "latency_ms": latency_ms,
            **raw,
            "passes": timing.repeats,
            "same_machine": same_machine,
        }
        if timing.precision != "fp32":
            record["precision"] = timing.precision
        records.append(record)
    return records
