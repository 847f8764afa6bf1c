"""Files of calibrations and of trained networks' results."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nas_core.errors import ArchitectureError, ConfigError, DataError, NasExtError
from nas_core.files.journal import read_jsonl
from nas_core.files.reading import file_digest, real_path
from nas_core.predictor.artifact import read_artifact, write_artifact
from nas_core.search.calibration.model import Calibration
from nas_core.space import Architecture, SearchSpace
from nas_core.space.files import space_from_dict, space_to_dict

KIND = "calibration"
_DAMAGE = (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError, NasExtError)


def save_calibration(calibration: Calibration, path: str | Path) -> None:
    """Write the trained networks and their metrics to a ``.safetensors`` file."""
    header: dict[str, Any] = {
        "space": space_to_dict(calibration.space), "metric": calibration.metric, "larger": calibration.larger,
        "inherited_metric": calibration.inherited_metric, "inherited_larger": calibration.inherited_larger,
        "info": dict(calibration.info), "trained": [network.to_dict() for network in calibration.trained],
        "standalone": list(calibration.trained.values()), "inherited": calibration.inherited.tolist(),
    }  # fmt: skip
    write_artifact(path, KIND, header, {})


def load_calibration(path: str | Path, space: SearchSpace | None = None) -> Calibration:
    """Read a file of :func:`save_calibration` and fit the calibration.

    Raises:
        ConfigError: its search space is not ``space``.
        DataError: the file is missing or damaged.
    """
    if not Path(path).is_file():
        raise DataError(f"file not found: {path}; create a calibration with 'nas-ext lab calibrate'")
    header, _ = read_artifact(path, KIND)
    try:
        networks = [Architecture(genes) for genes in header["trained"]]
        names = ("metric", "larger", "inherited_metric", "inherited_larger", "info")
        calibration = Calibration(space_from_dict(header["space"]), **{name: header[name] for name in names})
        calibration.fit(networks, header["inherited"], header["standalone"])
    except _DAMAGE as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DataError(f"{path}: the calibration is damaged ({reason[:120]}); create it again") from None
    if space is not None and calibration.space != space:
        raise ConfigError(
            f"{path} is a calibration for search space {calibration.space.name!r}, but the supernet has"
            f" {space.name!r}; create a calibration with this supernet"
        )
    return calibration


@dataclass(frozen=True)
class TrainedNetworks:
    """Trained networks and their results."""

    architectures: list[Architecture]
    standalone: list[float]
    test_set: str | None


def read_trained(
    paths: Sequence[str | Path], space: SearchSpace, metric: str, test_set: str | None = None
) -> TrainedNetworks:
    """Read results of trained networks from JSON Lines files.

    A line is ``{"genes": {..}, "metrics": {"test_bleu": 26.1}, "test_set": "newstest2014"}``. ``architecture`` may
    replace ``genes``, as in ``standalone.jsonl`` of ``nas-ext lab study gap``.

    Args:
        test_set: required test set of lines that name one; default: the first that is named.

    Raises:
        DataError: a line lacks a valid architecture or a result, has another test set, or repeats a network.
    """
    results: dict[Architecture, float] = {}
    for path in paths:
        for number, record in enumerate(read_jsonl(path), 1):
            line = f"{path}, line {number}"
            architecture = architecture_of(record, space, line)
            if architecture in results:
                raise DataError(f"{line}: network {architecture.key} already has a result; remove one of the two")
            record_set = record.get("test_set") or test_set
            test_set = record_set if test_set is None else test_set
            if record_set != test_set:
                raise DataError(
                    f"{line} has a result on test set {record_set!r}, expected {test_set!r}; give results on one set"
                )
            results[architecture] = _result(record, metric, f"{line}: network {architecture.key}")
    if not results:
        raise DataError(
            f"{' and '.join(map(str, paths))}: no trained networks found; expected one JSON object per line"
        )
    return TrainedNetworks(list(results), list(results.values()), test_set)


def architecture_of(record: Mapping[str, Any], space: SearchSpace, line: str) -> Architecture:
    """Return the architecture of a JSON record; ``line`` names the record in messages."""
    genes = record.get("genes", record.get("architecture"))
    if isinstance(genes, dict) and isinstance(genes.get("genes"), dict):
        genes = genes["genes"]
    if not isinstance(genes, dict):
        fields = ", ".join(map(repr, record)) or "nothing"
        raise DataError(f"{line} has no 'genes', only {fields}; add the genes as in an architecture file")
    try:
        return space.validate(Architecture(genes))
    except ArchitectureError as error:
        raise DataError(f"{line}: the architecture is not in the supernet's search space: {error}") from None


def _result(record: Mapping[str, Any], metric: str, line: str) -> float:
    metrics = record.get("metrics")
    results = metrics if isinstance(metrics, Mapping) else {}
    if metric not in results and any(value is not None for value in results.values()):
        raise DataError(f"{line} has no {metric}, only {', '.join(map(str, results))}; choose one with --metric")
    value = results.get(metric)
    if value is None:
        failure = f"; its training failed ({record['error']})" if record.get("error") else ""
        raise DataError(f"{line} has no {metric} yet{failure}; add the result, or remove the line")
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise DataError(f"{line} has {metric} {str(value)[:40]!r}; expected a number")
    return float(value)


def evaluation_settings(data: Path | None, valid_subset: str, valid_samples: int | None) -> dict[str, Any]:
    """Return the data options for :meth:`nas_core.supernet.host.Host.open`."""
    return {
        "data": str(real_path(data)) if data else None,
        "valid_subset": valid_subset,
        "valid_samples": valid_samples,
    }


def check_provenance(
    calibration: Calibration,
    path: Path,
    checkpoints: Sequence[Path],
    options: Mapping[str, Any],
) -> None:
    """Raise a ConfigError unless a calibration was created with these supernets, in this order, and these evaluation
    data.

    Args:
        options: data options of :func:`evaluation_settings`.
    """
    expected, digests = calibration.info.get("supernets") or [], [file_digest(path) for path in checkpoints]
    if len(digests) != len(expected):
        raise ConfigError(
            f"{path} was created with {len(expected)} supernets, got {len(digests)}; give all but the first"
            " with --further-supernet"
        )
    for checkpoint, digest, expected_digest in zip(checkpoints, digests, expected, strict=True):
        if digest != expected_digest:
            raise ConfigError(
                f"{path} was created with another supernet than {checkpoint}, or another order of supernets; create a"
                " calibration with this supernet"
            )
    for name, value in (calibration.info.get("settings") or {}).items():
        if options.get(name) != value:
            raise ConfigError(
                f"{path} was created with {name} {value}, now {name} is {options.get(name)}; give the same value, or"
                " create the calibration again"
            )
