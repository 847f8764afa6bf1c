"""Measured latencies of networks or architectures, read from files."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nas_core.errors import DataError
from nas_core.files.reading import real_path
from nas_core.latency.by_genes.dataset import LatencyDataset
from nas_core.latency.by_graph.dataset.folder import JOURNAL, NetworkSet, second_measurements
from nas_core.models.kind import fitting_kind
from nas_core.report.run import damaged
from nas_core.space import Architecture, SearchSpace

Floats = NDArray[np.float64]
_EXPECTED = "expected a folder of 'nas-ext latency dataset' or a .jsonl file of 'nas-ext latency collect'"


@dataclass(frozen=True)
class MeasuredNetwork:
    """Measured latency; unknown values are None."""

    name: str
    family: str
    latency_ms: float
    """Latency corrected for clock drift."""
    raw_ms: float | None
    """Latency as measured."""
    reference_ms: float
    """Latency of the reference network at the same time."""
    error_percent: float | None
    """Standard error of the latency, in percent."""
    when: float | None
    """Time, in seconds since 1970."""
    params_m: float | None = None
    flops_g: float | None = None
    nodes: int | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    parts_ms: Mapping[str, float] = field(default_factory=dict)
    architecture: Architecture | None = None
    again_percent: float | None = None
    """Difference of a second measurement in percent, without drift."""


@dataclass(frozen=True)
class Collection:
    """Measured networks of a folder in one runtime, or measured architectures of a file."""

    path: Path
    noun: str
    """``networks`` or ``architectures``."""
    runtime: str
    runtimes: Sequence[str]
    facts: Mapping[str, Any]
    """Time, machine and method of the measurements."""
    settings: Mapping[str, Any]
    error_definition: str
    networks: Sequence[MeasuredNetwork]
    machine: Mapping[str, Any]
    skipped: Sequence[tuple[str, str, str]] = ()
    """Name, family and reason of each network that was not measured."""
    space: SearchSpace | None = None
    """Search space of architectures; None for networks."""
    warnings: Sequence[str] = ()

    @property
    def families(self) -> list[str]:
        names = [*(network.family for network in self.networks), *(family for _, family, _ in self.skipped)]
        return list(dict.fromkeys(names))

    def values(self, name: str) -> Floats:
        """Return a field of all networks ``(n,)``; NaN if unknown."""
        return np.array([getattr(network, name) for network in self.networks], np.float64)


def read_collection(path: str | Path, runtime: str | None = None) -> Collection:
    """Read a folder of ``nas-ext latency dataset`` or a file of ``nas-ext latency collect``.

    Args:
        runtime: runtime of a folder; default: the first one.
    """
    path = Path(path)
    if path.is_dir():
        if not (path / JOURNAL).exists():
            raise DataError(f"{path} contains no {JOURNAL}; {_EXPECTED}")
        with damaged(path):
            return _networks(path, runtime)
    if not path.exists():
        raise DataError(f"{path} does not exist; {_EXPECTED}")
    if path.suffix != ".jsonl" or path.name == JOURNAL:
        raise DataError(f"{path} is not a file of measured architectures; {_EXPECTED}")
    if runtime is not None:
        raise DataError(
            f"--runtime {runtime} is only for folders of 'nas-ext latency dataset', but {path} is a file of"
            " architectures; leave it out"
        )
    with damaged(path):
        return _architectures(path)


def _networks(path: Path, runtime: str | None) -> Collection:
    dataset = NetworkSet.read(path)
    runtime = runtime or next(iter(dataset.reference_ms))
    rows = dataset.measured(runtime)
    if not rows:
        raise DataError(
            f"none of the {len(dataset.rows)} networks of {path} was measured in {runtime}; measure them with 'nas-ext"
            " latency dataset'"
        )
    times = [row["measured"][runtime] for row in rows]
    state_ms = float(np.median([time["reference_ms"] for time in times]))
    second = second_measurements(dataset, runtime)
    networks = [
        MeasuredNetwork(
            row["name"], row["family"], time["relative"] * state_ms, time.get("raw_ms"), time["reference_ms"],
            _error_of_visits(time.get("visits") or ()), row.get("time"), row.get("params_m"), row.get("flops_g"),
            row.get("nodes"), row["settings"],
            again_percent=100 * (second[row["name"]]["relative"] / time["relative"] - 1)
            if row["name"] in second else None,
        )
        for row, time in zip(rows, times, strict=True)
    ]  # fmt: skip
    timing = dataset.settings.get("timing") or {}
    reference = dataset.settings.get("reference")
    family = reference.get("family", "") if isinstance(reference, Mapping) else ""
    other_runtimes = [name for name in dataset.reference_ms if name != runtime]
    also = f" (also measured in {', '.join(other_runtimes)}: --runtime {other_runtimes[0]})" if other_runtimes else ""
    facts = {
        "folder": str(real_path(path)),
        "networks": len(networks),
        "skipped": len(dataset.rows) - len(rows) or None,
        **_conditions(networks, dataset, timing),
        "runtime": f"{runtime} {dataset.machine.get(runtime) or ''}".strip() + also,
        "reference": f"a fixed {family} network".replace("  ", " ") + f", usually {state_ms:.3g} ms"
        if "source" not in dataset.settings
        else None,
        "visits": dataset.settings.get("visits"),
    }
    return Collection(
        path, "networks", runtime, list(dataset.reference_ms), _present(facts), dataset.settings,
        "the standard deviation of a network's visits, divided by the square root of their number", networks,
        dataset.machine, [(row["name"], row["family"], str(row["error"])) for row in dataset.rows if "error" in row],
        warnings=_clock_warnings(dataset),
    )  # fmt: skip


def _architectures(path: Path) -> Collection:
    dataset = LatencyDataset.read(path)
    records: dict[str, tuple[Architecture, dict[str, Any]]] = {}
    for record in dataset.records:  # as for models, the first measurement of an architecture counts
        architecture = dataset.space.validate(Architecture(record["genes"]))
        records.setdefault(architecture.key, (architecture, record))
    if not records:
        raise DataError(f"{path} contains no measurement; add measurements with 'nas-ext latency collect'")
    kind = fitting_kind(dataset.space)
    workload, timing = dataset.settings.get("workload") or {}, dataset.settings.get("timing") or {}
    predicted = workload.get("kind") == "predicted"
    state_ms = float(np.median([record["reference_ms"] for _, record in records.values()]))
    state = state_ms / dataset.reference_ms
    networks = [
        MeasuredNetwork(
            key, dataset.space.name, record["latency_ms"] * state, record.get("raw_ms"), record["reference_ms"],
            _error_of_passes(record, timing, predicted), record.get("time"),
            None if kind is None else kind.params_m(architecture), None if kind is None else kind.flops_g(architecture),
            parts_ms=_parts(record, state), architecture=architecture,
        )
        for key, (architecture, record) in records.items()
    ]  # fmt: skip
    facts = {
        "file": str(real_path(path)),
        "search space": dataset.space.name,
        "architectures": len(networks),
        "repeated, ignored": len(dataset.records) - len(networks) or None,
        **_conditions(networks, dataset, {} if predicted else timing),
        "workload": ", ".join(f"{name} {value}" for name, value in flat(workload).items()),
        "reference": f"the space's middle architecture, usually {state_ms:.3g} ms",
    }
    warnings = [
        f"These latencies were not measured: model {workload.get('model')!r} of whole networks predicted them"
        " ('nas-ext latency collect --predicted-by'). Errors below are against these predictions."
    ]
    return Collection(
        path, "architectures", str(workload.get("runtime") or "predicted") if predicted else "torch", [],
        _present(facts), dataset.settings,
        "the model's standard deviation" if predicted
        else "the standard deviation of a network's passes, divided by the square root of their number",
        networks, dataset.machine, space=dataset.space, warnings=[*warnings * predicted, *_clock_warnings(dataset)],
    )  # fmt: skip


def _error_of_visits(visits: Sequence[float]) -> float | None:
    if len(visits) < 2:
        return None
    return float(100 * np.std(visits, ddof=1) / np.mean(visits) / math.sqrt(len(visits)))


def _error_of_passes(record: Mapping[str, Any], timing: Mapping[str, Any], predicted: bool) -> float | None:
    if record.get("std_ms") is None or not record.get("raw_ms"):
        return None
    repeats = 1 if predicted else timing.get("repeats") or 0
    if not predicted and repeats < 2:
        return None
    passes = repeats - 2 * int(float(timing.get("trim") or 0) * repeats)
    return float(100 * record["std_ms"] / record["raw_ms"] / math.sqrt(passes))


def _parts(record: Mapping[str, Any], state: float) -> dict[str, float]:
    totals = ("latency_ms", "raw_ms", "std_ms", "mad_ms", "reference_ms")
    return {
        name.removesuffix("_ms"): float(value) * state
        for name, value in record.items()
        if name.endswith("_ms") and name not in totals and value is not None
    }


def _conditions(
    networks: Sequence[MeasuredNetwork], dataset: NetworkSet | LatencyDataset, timing: Mapping[str, Any]
) -> dict[str, Any]:
    times = [network.when for network in networks if network.when is not None]
    period = " to ".join(f"{datetime.fromtimestamp(end, UTC):%Y-%m-%d %H:%M}" for end in (min(times), max(times))) if (
        times
    ) else None  # fmt: skip
    machine = dataset.machine
    cores = f"{machine['cores']} cores" if machine.get("cores") else None
    names = (machine.get("device_name") or machine.get("cpu"), machine.get("platform"), cores)
    return {
        "measured (UTC)": period,
        "machine": ", ".join(str(name) for name in names if name),
        **{name: machine.get(name) for name in ("device", "threads", "torch")},
        "clock": timing.get("clock"),
        "precision": None if timing.get("precision") == "fp32" else timing.get("precision"),
        "passes": f"{timing.get('repeats')}{', replayed as CUDA graphs' * bool(timing.get('cuda_graphs'))}"
        if timing
        else None,
    }


def _clock_warnings(dataset: NetworkSet | LatencyDataset) -> list[str]:
    text = dataset.clock_warning()
    return [f"The {text}."] if text else []


def _present(facts: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in facts.items() if value not in (None, "")}


def flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    result: dict[str, Any] = {}
    for name, value in values.items():
        result |= flat(value, f"{prefix}{name}.") if isinstance(value, Mapping) else {f"{prefix}{name}": value}
    return result
