"""Standalone networks: what was trained before is read, what is missing is trained by the host."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nas_core.errors import ArchitectureError, DataError, NasExtError
from nas_core.files import append_jsonl, file_digest, make_folder, read_jsonl, real_path, write_json
from nas_core.locks import only_process
from nas_core.space import Architecture, SearchSpace
from nas_core.studies.trainings import LOG, Training, check_settings, train_all
from nas_core.supernet.host import Supernet

RESULTS = "standalone.jsonl"
"""The file of records in a study's folder."""


@dataclass(frozen=True)
class StandaloneRun:
    """A network that was trained from scratch."""

    architecture: Architecture
    metrics: Mapping[str, float]
    examples: str = ""
    """What it was evaluated on, as :meth:`nas_core.supernet.Supernet.examples_key`; empty: nobody said."""
    seconds: float | None = None
    """How long its training took."""
    updates: int | None = None
    """How many updates its training had."""


def read_runs(path: Path, space: SearchSpace) -> list[StandaloneRun]:
    """Results of standalone networks, one JSON object a line: ``architecture``, and ``metrics`` by name.

    Raises:
        DataError: a record has no architecture of the space, no metrics (its training has not ended), the
            architecture of an earlier one, or updates or seconds that are no numbers; or a metric is no finite number
            (its training has diverged).
    """
    found: dict[Architecture, int] = {}
    runs = []
    for number, record in enumerate(read_jsonl(path), start=1):
        where = f"{path}, record {number}"
        genes, metrics = record.get("architecture", record.get("genes")), record.get("metrics")
        if not isinstance(genes, dict):
            raise DataError(f"{where}: no field 'architecture' with genes; it has {', '.join(map(repr, record))}")
        try:
            nested = isinstance(genes.get("genes"), dict)
            architecture = space.validate(Architecture.from_json(genes) if nested else Architecture(genes))
        except (ArchitectureError, TypeError, ValueError) as error:
            raise DataError(f"{where} does not belong to the supernet: {error}") from None
        if not isinstance(metrics, dict) or not metrics or not all(map(_is_number, metrics.values())):
            raise DataError(f"{where} has no metrics: its training has not ended; finish it, or take the record out")
        if bad := diverged(metrics):
            raise DataError(f"{where}: {bad}, so that the training has diverged; train it anew, or take the record out")
        examples, seconds, updates = (record.get(name) for name in ("examples", "seconds", "updates"))
        for name, value in (("seconds", seconds), ("updates", updates)):
            if value is not None and not (_is_number(value) and 0 <= value < math.inf):
                raise DataError(f"{where} has {name} {str(value)[:40]!r}; expected a number, or none")
        if architecture in found:
            raise DataError(f"{where} is of the same architecture as record {found[architecture]}; keep one of them")
        found[architecture] = number
        runs.append(StandaloneRun(architecture, dict(metrics), str(examples or ""), seconds, updates))
    if not runs:
        raise DataError(f"{path} holds no records; expected one JSON object a line with an architecture and metrics")
    return runs


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def diverged(metrics: Mapping[str, float]) -> str:
    """The first metric that is not finite, in words; empty if all are."""
    return next((f"{name} is {value}" for name, value in metrics.items() if not math.isfinite(value)), "")


def train_standalone(
    trainer: Supernet,
    checkpoint: Path,
    space: SearchSpace,
    architectures: Sequence[Architecture],
    folder: Path,
    changes: Mapping[str, str],
    jobs: int = 1,
) -> list[StandaloneRun]:
    """Train what the folder does not hold yet; all runs of the architectures, in their order.

    Each network has a folder of its own in ``standalone/`` with the log of its training, and a record in
    ``standalone.jsonl`` once it is trained and evaluated. Called again, finished runs are read, and the others go on
    from what their trainer has kept.

    Args:
        trainer: the supernet by whose settings they are trained, which lies at ``checkpoint``.
        changes: settings that are others than the supernet's.
        jobs: how many are trained at the same time.

    Raises:
        ConfigError: the folder holds runs of other settings or other data, or one of its networks is still being
            trained by a study that was killed. DataError: a training failed.
    """
    results = folder / RESULTS
    with only_process(folder / "standalone.lock", f"is training into {folder}", "give another --out"):
        before = {run.architecture: run for run in read_runs(results, space)} if results.exists() else {}
        missing = [architecture for architecture in dict.fromkeys(architectures) if architecture not in before]
        settled, settings = folder / "standalone.json", _settings(checkpoint, changes)
        if missing:  # else nothing is mixed, and the data may be gone
            settings["data"] = dict(trainer.training_data())
        if before or any(folder.glob(f"standalone/*/{LOG}")):  # else, what is noted has trained nothing
            check_settings(settled, settings, "standalone runs")
        trainings = {}
        for architecture in missing:
            own = folder / "standalone" / architecture.key
            make_folder(own)
            command = trainer.standalone_command(architecture, real_path(own), changes)
            trainings[architecture] = Training(command, own)
        if missing:  # their settings are known to the trainer now
            write_json(settled, settings)

        def finished(architecture: Architecture, seconds: float) -> None:
            run = _evaluated(trainer, architecture, folder, seconds)
            append_jsonl(results, _record(run))
            before[architecture] = run

        train_all(trainings, jobs, finished)
    return [before[architecture] for architecture in dict.fromkeys(architectures)]


def _evaluated(trainer: Supernet, architecture: Architecture, folder: Path, seconds: float) -> StandaloneRun:
    own = folder / "standalone" / architecture.key
    try:
        metrics, examples = trainer.evaluate_standalone(own)
    except NasExtError as error:
        raise DataError(f"standalone training in {own} has left no network that can be evaluated: {error}") from None
    if bad := diverged(metrics):
        raise DataError(
            f"standalone training in {own} has diverged: {bad}; give other"
            " settings with --set train.NAME=VALUE, and another --out"
        )
    updates = trainer.standalone_updates(own)
    return StandaloneRun(architecture, metrics, examples, round(seconds, 2), updates)


def _record(run: StandaloneRun) -> dict[str, Any]:
    return {
        "architecture": run.architecture.to_dict(),
        "metrics": dict(run.metrics),
        "examples": run.examples,
        "seconds": run.seconds,
        "updates": run.updates,
    }


def _settings(checkpoint: Path, changes: Mapping[str, str]) -> dict[str, Any]:
    """By what the networks of a folder are trained."""
    return {"settings_of": file_digest(checkpoint), "changes": dict(changes)}
