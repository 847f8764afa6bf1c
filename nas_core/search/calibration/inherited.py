"""Inherited metrics of trained networks, each evaluated once and kept."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nas_core.errors import DataError, unknown_choice
from nas_core.files import append_jsonl, read_jsonl
from nas_core.locks import only_process
from nas_core.space import Architecture
from nas_core.supernet.host import Supernet


def inherited_metrics(
    supernets: Mapping[str, Supernet],
    architectures: Sequence[Architecture],
    metric: str,
    journal: str | Path,
    settings: Mapping[str, Any],
    told: Callable[[str], None] = lambda line: None,
) -> NDArray[np.float64]:
    """Evaluate architectures with the weights of supernets, ``(n, S)``; what the journal holds is not evaluated again,
    so that a run that was interrupted goes on.

    Args:
        supernets: fingerprint of the checkpoint -> the supernet.
        journal: JSON Lines, one for each evaluation.
        settings: whatever else decides a value; other ones are evaluated anew.

    Raises:
        UnknownChoiceError: the supernet has no such metric. DataError: it is no finite number.
        ConfigError: another process writes the journal. NasExtError: it cannot be written, or the host refuses.
    """
    path = Path(journal)
    found = np.empty((len(architectures), len(supernets)))
    with only_process(path.with_suffix(".lock"), f"evaluates for {path}", "wait for it"):
        known = _known(path, settings)
        for column, (fingerprint, supernet) in enumerate(supernets.items()):
            for row, architecture in enumerate(architectures):
                metrics = known.get((fingerprint, architecture.key))
                if metrics is None or metric not in metrics:
                    metrics = supernet.evaluate(architecture)
                    if not math.isfinite(value := inherited_value(metrics, metric)):
                        raise DataError(f"{architecture.key}: its inherited {metric} is {value}; leave the network out")
                    record = {"supernet": fingerprint, "settings": dict(settings), "key": architecture.key}
                    append_jsonl(path, {**record, "metrics": metrics, "genes": architecture.to_dict()})
                    told(f"{architecture.key}: inherited {metric} {metrics[metric]:.4g}")
                found[row, column] = inherited_value(metrics, metric)
    return found


def inherited_value(metrics: Mapping[str, float], metric: str) -> float:
    """That metric of an evaluation.

    Raises:
        UnknownChoiceError: it has others.
    """
    if metric not in metrics:
        raise unknown_choice("metric of the supernet", metric, list(metrics))
    return float(metrics[metric])


def _known(path: Path, settings: Mapping[str, Any]) -> dict[tuple[str, str], Mapping[str, float]]:
    records = read_jsonl(path) if path.exists() else []
    return {
        (str(record.get("supernet")), str(record.get("key"))): record["metrics"]
        for record in records
        if record.get("settings") == dict(settings) and isinstance(record.get("metrics"), dict)
    }
