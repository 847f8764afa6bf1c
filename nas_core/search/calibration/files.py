"""Files of calibrations, results of trained networks, and the journal of inherited metrics."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nas_core.errors import ArchitectureError, ConfigError, DataError, NasExtError
from nas_core.files.journal import append_jsonl, read_jsonl
from nas_core.files.reading import file_digest, read_bytes, real_path
from nas_core.locks import only_process
from nas_core.predictor.artifact import read_artifact, write_artifact
from nas_core.predictor.mixture import Mixture
from nas_core.predictor.targets import TargetScale
from nas_core.search.calibration.model import Calibration, inherited_value
from nas_core.search.calibration.parts import PARTS, Inherited, Learned, Line, Parts
from nas_core.space import Architecture, SearchSpace
from nas_core.space.files import space_from_dict, space_to_dict
from nas_core.supernet.host import Supernet

KIND = "calibration"
_DAMAGE = (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError, NasExtError)
SAME = 1e-6
"""Relative tolerance of estimates between saving and loading."""


def save_calibration(calibration: Calibration, path: str | Path) -> None:
    """Write one ``.safetensors`` file: arrays as tensors, the rest as JSON in the header."""
    learned = calibration.learned
    header: dict[str, Any] = {
        "space": space_to_dict(calibration.space), "metric": calibration.metric, "larger": calibration.larger,
        "inherited_metric": calibration.inherited_metric, "inherited_larger": calibration.inherited_larger,
        "info": dict(calibration.info), "trained": [network.to_dict() for network in calibration.trained],
        "standalone": list(calibration.trained.values()),
    }  # fmt: skip
    arrays: dict[str, Any] = {}
    if learned is not None:
        scale = learned.parts.inherited
        header |= {"mixture": learned.mixture.to_json(), "scale": learned.scale.to_json()}
        arrays |= {"inherited": learned.inherited, "middle": scale.middle, "deviation": scale.deviation}
        arrays |= {"together": scale.together, "estimates": learned.parts.predict(learned.inherited, learned.sizes)}
        for name, line in zip(PARTS, learned.parts.lines, strict=True):
            arrays |= {f"{name}.weights": line.weights, f"{name}.offset": line.offset}
    tensors = {name: torch.from_numpy(np.array(array, np.float64)) for name, array in arrays.items()}
    write_artifact(path, KIND, header, tensors)


def load_calibration(path: str | Path, space: SearchSpace | None = None) -> Calibration:
    """Read a file of :func:`save_calibration`.

    Raises:
        ConfigError: the calibration was fitted in another space than ``space``.
    """
    if not Path(path).is_file():
        raise DataError(f"file not found: {path}; 'nas-ext lab calibrate' makes a calibration")
    header, tensors = read_artifact(path, KIND)
    try:
        made = _restored(header, tensors)
    except _DAMAGE as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DataError(f"{path}: the calibration is damaged ({reason[:120]}); make it anew") from None
    if space is not None and made.space != space:
        raise ConfigError(
            f"{path} was fitted to networks of space {made.space.name!r}, and this is {space.name!r}; calibrate on the"
            " supernet that is searched"
        )
    return made


def _restored(header: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> Calibration:
    arrays = {name: tensor.numpy() for name, tensor in tensors.items()}
    if not all(array.dtype == np.float64 and np.isfinite(array).all() for array in arrays.values()):
        raise DataError("an array holds a value that is no number")
    made = Calibration(
        space_from_dict(header["space"]), str(header["metric"]), bool(header["larger"]),
        str(header["inherited_metric"]), bool(header["inherited_larger"]), dict(header["info"]),
    )  # fmt: skip
    networks = [made.space.validate(Architecture(genes)) for genes in header["trained"]]
    made.trained = dict(zip(networks, map(float, header["standalone"]), strict=True))
    if not networks:
        return made
    lines = [Line(arrays[f"{name}.weights"], float(arrays[f"{name}.offset"])) for name in PARTS]
    scale = Inherited(arrays["middle"], arrays["deviation"], float(arrays["together"]))
    mixture = Mixture.from_json(header["mixture"], len(PARTS))
    parts, inherited = Parts(scale, (lines[0], lines[1], lines[2])), arrays["inherited"]
    made.learned = Learned(parts, mixture, TargetScale.from_json(header["scale"]), inherited, made.sizes_of(networks))
    saved, estimates = arrays["estimates"], parts.predict(inherited, made.learned.sizes)
    if estimates.shape != saved.shape or np.abs(estimates - saved).max() > SAME * max(float(saved.std()), 1e-9):
        raise ConfigError("its estimates differ from the saved ones")
    return made


@dataclass(frozen=True)
class TrainedNetworks:
    """Trained networks with standalone results."""

    architectures: list[Architecture]
    standalone: list[float]
    test_set: str | None


def read_trained(
    paths: Sequence[str | Path], space: SearchSpace, metric: str, test_set: str | None = None
) -> TrainedNetworks:
    """Read records ``{"genes": {..}, "metrics": {"test_bleu": 26.1}, "test_set": "newstest2014"}``, one a line.

    ``architecture`` may replace ``genes``, as in ``standalone.jsonl`` of ``nas-ext lab study gap``.

    Args:
        test_set: required test set of the records that name one.

    Raises:
        DataError: a record, named by its line, lacks a valid architecture or a result, has another test set, or repeats
            a network.
    """
    results: dict[Architecture, float] = {}
    lines: dict[Architecture, str] = {}
    named = ("--test-set", test_set) if test_set is not None else None
    for path in paths:
        records = read_jsonl(path)
        if not records:
            raise DataError(f"{path} holds no trained networks; expected one JSON object per line")
        for number, record in zip(_lines(path, len(records)), records, strict=True):
            line = f"{path}, line {number}"
            architecture = architecture_of(record, space, line)
            if architecture in results:
                raise DataError(f"{line}: network {architecture.key} is in {lines[architecture]} too; keep one")
            if record.get("test_set") is not None:
                named = named or (line, str(record["test_set"]))
                if str(record["test_set"]) != named[1]:
                    raise DataError(
                        f"{line} is a result of test set {str(record['test_set'])!r}, {named[0]} of {named[1]!r};"
                        " take results of one set"
                    )
            results[architecture] = _result(record, metric, f"{line}: network {architecture.key}")
            lines[architecture] = line
    return TrainedNetworks(list(results), list(results.values()), named[1] if named else None)


def _lines(path: str | Path, records: int) -> list[int]:
    numbers = [number for number, line in enumerate(read_bytes(path).split(b"\n"), 1) if line.strip()]
    if len(numbers) > records:
        raise DataError(f"{path}, line {numbers[-1]} is not a JSON object; complete it, or remove the line")
    return numbers


def architecture_of(record: Mapping[str, Any], space: SearchSpace, line: str) -> Architecture:
    """Return the architecture of a record; errors name ``line``."""
    genes = record.get("genes", record.get("architecture"))
    if isinstance(genes, dict) and isinstance(genes.get("genes"), dict):
        genes = genes["genes"]
    if not isinstance(genes, dict):
        fields = ", ".join(map(repr, record)) or "nothing"
        raise DataError(f"{line} has no 'genes', it has {fields}; write them as architecture files do")
    try:
        return space.validate(Architecture(genes))
    except ArchitectureError as error:
        raise DataError(f"{line} does not belong to the supernet: {error}") from None


def _result(record: Mapping[str, Any], metric: str, line: str) -> float:
    metrics = record.get("metrics")
    results = metrics if isinstance(metrics, Mapping) else {}
    if metric not in results and any(value is not None for value in results.values()):
        raise DataError(f"{line} has no {metric}, it has {', '.join(map(str, results))}; choose one with --metric")
    value = results.get(metric)
    if value is None:
        why = f", its training failed ({record['error']})" if record.get("error") else ""
        raise DataError(f"{line} has no {metric} yet{why}; fill its result in, or remove the line")
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise DataError(f"{line} has {metric} {str(value)[:40]!r}; expected a number")
    return float(value)


def inherited_metrics(
    supernets: Mapping[str, Supernet],
    architectures: Sequence[Architecture],
    metric: str,
    journal: str | Path,
    settings: Mapping[str, Any],
    log: Callable[[str], None] = lambda line: None,
) -> NDArray[np.float64]:
    """Return inherited metrics ``(n, S)`` of S supernets, evaluating those that the journal lacks.

    Args:
        supernets: checkpoint fingerprint -> supernet.
        journal: JSON Lines, one per evaluation.
        settings: other settings that affect a value.

    Raises:
        ConfigError: another process writes the journal.
    """
    path = Path(journal)
    values = np.empty((len(architectures), len(supernets)))
    with only_process(path.with_suffix(".lock"), f"evaluates for {path}", "wait for it"):
        journaled = _known(path, settings)
        for column, (fingerprint, supernet) in enumerate(supernets.items()):
            for row, architecture in enumerate(architectures):
                metrics = journaled.get((fingerprint, architecture.key))
                if metrics is None or metric not in metrics:
                    metrics = supernet.evaluate(architecture)
                    if not math.isfinite(value := inherited_value(metrics, metric)):
                        raise DataError(f"{architecture.key}: its inherited {metric} is {value}; leave the network out")
                    record = {"supernet": fingerprint, "settings": dict(settings), "key": architecture.key}
                    append_jsonl(path, {**record, "metrics": metrics, "genes": architecture.to_dict()})
                    log(f"{architecture.key}: inherited {metric} {metrics[metric]:.4g}")
                values[row, column] = inherited_value(metrics, metric)
    return values


def _known(path: Path, settings: Mapping[str, Any]) -> dict[tuple[str, str], Mapping[str, float]]:
    records = read_jsonl(path) if path.exists() else []
    return {
        (str(record.get("supernet")), str(record.get("key"))): record["metrics"]
        for record in records
        if record.get("settings") == dict(settings) and isinstance(record.get("metrics"), dict)
    }


def evaluation_settings(data: Path | None, valid_subset: str, valid_sentences: int | None) -> dict[str, Any]:
    """Return data options of :meth:`nas_core.supernet.host.Host.open`."""
    return {
        "data": str(real_path(data)) if data else None,
        "valid_subset": valid_subset,
        "valid_sentences": valid_sentences,
    }


def check_provenance(
    calibration: Calibration,
    path: Path,
    checkpoints: Sequence[Path],
    options: Mapping[str, Any],
    others: str = "the others come with --further-supernet",
) -> None:
    """Check that a calibration was made with these supernets, in this order, and the same evaluation data.

    Args:
        others: advice on the number of supernets, for the message.
    """
    expected, digests = calibration.info.get("supernets") or [], [file_digest(path) for path in checkpoints]
    if len(digests) != len(expected):
        raise ConfigError(f"{path} was made with {len(expected)} supernets, here {len(digests)} are given; {others}")
    if digests != expected and sorted(digests) == sorted(expected):
        raise ConfigError(f"{path} was made with these supernets in another order; give them as it was made")
    for checkpoint, digest, other in zip(checkpoints, digests, expected, strict=True):
        if digest != other:
            raise ConfigError(
                f"{path} was made with another supernet than {checkpoint}; calibrate on the one that is searched"
            )
    for name, value in (calibration.info.get("settings") or {}).items():
        if options.get(name) != value:
            raise ConfigError(
                f"{path} was made with {name} {value}, the search has {options.get(name)}; give the same, or calibrate"
                " anew"
            )
