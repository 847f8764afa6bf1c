"""Latency data sets from their folders and files, in the form that their page is made of."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from nas_core.errors import DataError
from nas_core.files import real_path
from nas_core.latency.by_genes.dataset import LatencyDataset
from nas_core.latency.by_graph.dataset import NetworkSet, second_measurements
from nas_core.latency.by_graph.dataset.folder import JOURNAL
from nas_core.latency.machine import described_states
from nas_core.models.kind import fitting_kind
from nas_core.report.measured.collection import Collection, MeasuredNetwork
from nas_core.space import Architecture

_YEAR_10000 = 253_402_300_800.0
_EXPECTED = "expected a folder of 'nas-ext latency dataset' or a .jsonl file of 'nas-ext latency collect'"


def read_collection(path: str | Path, runtime: str | None = None) -> Collection:
    """A folder of ``nas-ext latency dataset`` or a file of ``nas-ext latency collect``.

    Args:
        runtime: of a folder, whose latencies; default: the first that it was measured in.

    Raises:
        DataError: it is missing, empty, damaged or something else. ConfigError: a runtime that was not measured.
    """
    given = Path(path)
    if given.is_dir():
        if not (given / JOURNAL).exists():
            raise DataError(f"{path} holds no {JOURNAL}; {_EXPECTED}")
        return _of_networks(given, runtime)
    if not given.exists():
        raise DataError(f"{path} is not there; {_EXPECTED}")
    if given.suffix != ".jsonl":
        raise DataError(f"{path} ends in {given.suffix or 'nothing'}; {_EXPECTED}")
    if given.name == JOURNAL:
        raise DataError(f"{path} is the journal of a folder; give the folder, {given.parent}")
    if runtime is not None:
        raise DataError(f"--runtime {runtime} is for folders of 'nas-ext latency dataset'; {path} holds architectures")
    return _of_architectures(given)


def _of_networks(path: Path, runtime: str | None) -> Collection:
    found = NetworkSet.read(path)
    runtime = runtime or next(iter(found.reference_ms))
    rows = found.measured(runtime)
    if not rows:
        raise DataError(
            f"{path} holds no measured network among {len(found.rows)}; 'nas-ext latency dataset' adds them"
        )
    times = [row["measured"][runtime] for row in rows]
    state_ms = float(np.median([one["reference_ms"] for one in times]))
    again = second_measurements(found, runtime)
    networks = [
        MeasuredNetwork(
            row["name"], row["family"], one["relative"] * state_ms, _number(one.get("raw_ms")), one["reference_ms"],
            _error_of_visits(one.get("visits")), _time(row.get("time")), _number(row.get("params_m")),
            _number(row.get("flops_g")), row.get("nodes"), _plain(row["settings"]),
            again_percent=_longer(again.get(row["name"]), one, "relative"),
            again_raw_percent=_longer(again.get(row["name"]), one, "raw_ms"),
        )
        for row, one in zip(rows, times, strict=True)
    ]  # fmt: skip
    timing = found.settings.get("timing") or {}
    others = [name for name in found.reference_ms if name != runtime]
    facts = {
        "folder": str(real_path(path)),
        "networks": len(networks),
        "skipped": len(found.rows) - len(rows) or None,
        "measured": _period([one.when for one in networks]),
        **_machine(found.machine),
        "runtime": " ".join(str(part) for part in (runtime, found.machine.get(runtime)) if part)
        + (f" (also measured in {', '.join(others)}: --runtime {others[0]})" if others else ""),
        **_how(timing),
        "clocks of the device": described_states(found.clock_states()),
        "reference": None if "source" in found.settings else _reference(found.settings.get("reference"), state_ms),
        "timing": _visits(found.settings, timing),
    }
    return Collection(
        path, "networks", runtime, list(found.reference_ms), _known(facts),
        _flat({"settings": found.settings, "machine": found.machine}),
        "the spread of a network's visits, divided by the square root of their number", networks,
        [(row["name"], row["family"], str(row["error"])) for row in found.rows if "error" in row],
        found.machine, warnings=[*_few(len(networks)), *_clocks(found.told_clock_states())],
    )  # fmt: skip


def _of_architectures(path: Path) -> Collection:
    found = LatencyDataset.read(path)
    kept: dict[str, tuple[Architecture, dict[str, Any]]] = {}
    for record in found.records:  # the first measurement of an architecture counts, as it does for models
        architecture = found.space.validate(Architecture(record["genes"]))
        kept.setdefault(architecture.key, (architecture, record))
    if not kept:
        raise DataError(f"{path} holds no measurement yet; 'nas-ext latency collect' adds them")
    kind = fitting_kind(found.space)
    workload = found.settings.get("workload") or {}
    predicted = workload.get("kind") == "predicted"
    timing = found.settings.get("timing") or {}
    state_ms = float(np.median([record["reference_ms"] for _, record in kept.values()]))
    networks = [
        MeasuredNetwork(
            key, found.space.name, record["latency_ms"] * state_ms / found.reference_ms,
            _number(record.get("raw_ms")), record["reference_ms"], _error_of_passes(record, timing, predicted),
            _time(record.get("time")), None if kind is None else kind.params_m(architecture),
            None if kind is None else kind.flops_g(architecture),
            parts_ms=_parts(record, state_ms / found.reference_ms), architecture=architecture,
        )
        for key, (architecture, record) in kept.items()
    ]  # fmt: skip
    facts = {
        "file": str(real_path(path)),
        "search space": found.space.name,
        "architectures": len(networks),
        "repeated, left out": len(found.records) - len(networks) or None,
        "measured" if not predicted else "predicted": _period([one.when for one in networks]),
        **_machine(found.machine),
        "workload": ", ".join(f"{name} {value}" for name, value in _flat(workload).items()),
        **({} if predicted else _how(timing)),
        "clocks of the device": described_states(found.clock_states()),
        "reference": f"the space's middle architecture, usually {state_ms:.3g} ms",
        "timing": None if predicted else f"{timing.get('repeats')} passes after {timing.get('warmup')} to warm up",
    }
    warnings = [*_few(len(networks)), *_clocks(found.told_clock_states())]
    if predicted:
        warnings = [
            f"These latencies were not measured: model {workload.get('model')!r} of whole networks predicted them"
            f" ('nas-ext latency collect --predicted-by'). Errors below are against these predictions.",
            *warnings,
        ]
    told = "the model's spread" if predicted else "the spread of a network's passes / the square root of their number"
    return Collection(
        path, "architectures", "torch" if not predicted else str(workload.get("runtime") or "predicted"), [],
        _known(facts), _flat({"settings": found.settings, "machine": found.machine}), told, networks,
        machine=found.machine, space=found.space, warnings=warnings,
    )  # fmt: skip


def _error_of_visits(visits: Any) -> float | None:
    """Standard error of a network's latency in percent, of visits that are some seconds apart."""
    values = np.array([v for v in visits if isinstance(v, int | float)], np.float64) if visits else np.zeros(0)
    if len(values) < 2 or not np.isfinite(values).all() or values.mean() <= 0:
        return None
    return float(100 * values.std(ddof=1) / values.mean() / math.sqrt(len(values)))


def _error_of_passes(record: Mapping[str, Any], timing: Mapping[str, Any], predicted: bool) -> float | None:
    std_ms, raw_ms, repeats = (
        _number(value) for value in (record.get("std_ms"), record.get("raw_ms"), timing.get("repeats"))
    )
    if std_ms is None or not raw_ms or (not predicted and (not repeats or repeats < 2)):
        return None
    kept = 1.0 if predicted or repeats is None else repeats - 2 * int(float(timing.get("trim") or 0) * repeats)
    return 100 * std_ms / raw_ms / math.sqrt(kept)


def _longer(again: Mapping[str, Any] | None, first: Mapping[str, Any], name: str) -> float | None:
    before = _number(first.get(name))
    return None if again is None or not before else 100 * (float(again[name]) / before - 1)


def _parts(record: Mapping[str, Any], state: float) -> dict[str, float]:
    """Milliseconds of the parts of a pass, such as encoder and decoder, in the machine's usual state."""
    own = ("latency_ms", "raw_ms", "std_ms", "mad_ms", "reference_ms")
    return {
        name.removesuffix("_ms"): float(value) * state
        for name, value in record.items()
        if name.endswith("_ms") and name not in own and _number(value) is not None
    }


def _number(value: Any) -> float | None:
    """A finite number as it is, anything else as unknown."""
    good = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return float(value) if good else None


def _time(value: Any) -> float | None:
    """Seconds since 1970 that are a date; damaged files hold others."""
    number = _number(value)
    return number if number is not None and 0 <= number < _YEAR_10000 else None


def _plain(settings: Any) -> dict[str, Any]:
    return dict(settings) if isinstance(settings, Mapping) else {"settings": settings}


def _period(times: Sequence[float | None]) -> str | None:
    known = [time for time in times if time is not None]
    if not known:
        return None
    first, last = (datetime.fromtimestamp(time, UTC) for time in (min(known), max(known)))
    end = last.strftime("%H:%M" if first.date() == last.date() else "%Y-%m-%d %H:%M")
    return f"{first:%Y-%m-%d %H:%M} to {end} UTC"


def _machine(machine: Mapping[str, Any]) -> dict[str, Any]:
    device = machine.get("device_name") or machine.get("cpu")
    threads = machine.get("threads")
    return {
        "machine": ", ".join(
            str(part)
            for part in (device, machine.get("platform"), f"{machine['cores']} cores" if machine.get("cores") else None)
            if part
        ),
        "device": machine.get("device"),
        "threads": threads,
        "torch": machine.get("torch"),
    }


def _reference(reference: Any, state_ms: float) -> str:
    family = reference.get("family") if isinstance(reference, Mapping) else None
    return f"{f'a fixed {family} network' if family else 'a fixed network'}, usually {state_ms:.3g} ms"


def _visits(settings: Mapping[str, Any], timing: Mapping[str, Any]) -> str | None:
    if not settings.get("visits") or not timing.get("repeats"):
        return None
    return f"{settings['visits']} visits to each network, {timing['repeats']} passes each, the reference in between"


def _known(facts: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in facts.items() if value not in (None, "")}


def _flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested settings by names with dots."""
    found: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            found |= _flat(value, f"{prefix}{name}.")
        else:
            found[f"{prefix}{name}"] = value
    return found


def _how(timing: Mapping[str, Any]) -> dict[str, Any]:
    """The clock, and what is not the usual way of computing."""
    precision = timing.get("precision")
    return {
        "clock": timing.get("clock"),
        "precision": None if precision == "fp32" else precision,
        "passes": "replayed as CUDA graphs" if timing.get("cuda_graphs") else None,
    }


def _clocks(told: str | None) -> list[str]:
    return [f"The {told}."] if told else []


def _few(count: int) -> list[str]:
    return [f"Only {count} were measured: all figures of this page are rough."] if count < 20 else []
