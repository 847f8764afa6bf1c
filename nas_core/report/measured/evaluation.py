"""Comparison of predictions with measurements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from nas_core.errors import ConfigError, DataError
from nas_core.graph.fingerprints import fingerprint, fingerprints, known_among
from nas_core.latency import GeneLatencyModel, LatencyModel
from nas_core.latency.by_graph.data import family_quality
from nas_core.latency.by_graph.dataset.folder import read_dataset
from nas_core.latency.by_graph.nn_former import check_unpriced
from nas_core.predictor import AccuracyModel, Reader, kendall_tau, load_accuracy_model, reader_for
from nas_core.predictor.files import Records, read_records
from nas_core.predictor.metrics import mape
from nas_core.report.measured.collection import Collection, Floats

ALL, AVERAGE = "all", "average"
GROUPS = ("family", "group", "benchmark")
"""Fields for grouping; the first that all records have is used."""
_FEW = 20
"""Smallest number of records for a rank correlation among the best tenth."""
_EXPECTED = (10, 20, 30, 40, 50, 60, 70, 80, 90, 95)


@dataclass(frozen=True)
class Evaluation:
    """Predictions and measurements ``(n,)`` in the same unit."""

    measured: Floats
    predicted: Floats
    deviation: Floats
    """Standard deviations ``(n,)`` of the predictions; 0 if unknown."""
    families: NDArray[np.str_]
    learned: NDArray[np.bool_] | None
    """Mask ``(n,)`` of the model's training data; None if unknown."""

    @property
    def scored(self) -> NDArray[np.bool_]:
        """Mask ``(n,)`` of measurements outside the training data; all if none are outside."""
        if self.learned is None or self.learned.all():
            return np.ones(len(self.measured), np.bool_)
        return ~self.learned

    @property
    def held_out(self) -> bool:
        """True if :attr:`scored` excludes training data."""
        return self.learned is not None and not self.learned.all()

    @property
    def percent(self) -> Floats:
        """Relative errors ``(n,)`` of the predictions, in percent."""
        return np.asarray(100 * (self.predicted / self.measured - 1), np.float64)

    @property
    def has_deviation(self) -> bool:
        return bool((self.deviation > 0).any())

    @property
    def inside(self) -> NDArray[np.bool_]:
        """Mask ``(n,)`` of measurements within one standard deviation of the prediction."""
        return np.asarray(np.abs(self.predicted - self.measured) <= self.deviation, np.bool_)

    def rows(self, mask: NDArray[np.bool_] | None = None) -> list[dict[str, Any]]:
        """Return table rows with the errors of each family, their average, and the errors over all networks.

        Args:
            mask: included measurements ``(n,)``; default: :attr:`scored`.
        """
        mask = self.scored if mask is None else mask
        quality = family_quality(self.predicted[mask], self.measured[mask], self.families[mask])
        rows: list[dict[str, Any]] = []
        for name, row in quality.items():
            if name in (ALL, AVERAGE) and len(quality) <= 3:
                continue
            members = mask if name == ALL else mask & (self.families == name)
            errors = {"family": name, "mape": row.mape_percent, "within": row.acc10_percent}
            if name == AVERAGE:
                means = {column: [other[column] for other in rows] for column in ("inside", "bias")}
                figures = {column: None if None in values else np.mean(values) for column, values in means.items()}
                rows.append({**errors, **figures, "scored": None, "worst": None})
                continue
            percent = self.percent[members]
            inside = float(100 * self.inside[members].mean()) if self.has_deviation else None
            worst = float(percent[np.argmax(np.abs(percent))])
            rows.append(
                {**errors, "scored": row.count, "inside": inside, "bias": float(percent.mean()), "worst": worst}
            )
        return rows

    def worst(self, count: int, errors: Floats | None = None) -> list[int]:
        """Return the indices of the largest errors outside the training data, by default relative errors."""
        places = np.flatnonzero(self.scored)
        order = np.argsort(-np.abs((self.percent if errors is None else errors)[places]), kind="stable")
        return [int(place) for place in places[order][:count]]

    def note(self, noun: str) -> str:
        """Return a sentence about how many of the measured ``noun`` (a plural) are training data."""
        count = len(self.measured)
        if self.learned is None:
            return f"The model file does not list its training data; {noun} among them make the errors too small."
        learned = int(self.learned.sum())
        if learned == count:
            return f"All {count} {noun} are in the model's training data; errors are training errors."
        return (
            f"{learned} of {count} {noun} are in the model's training data. Errors are those of the other"
            f" {count - learned}."
        )


def evaluate_latency_model(collection: Collection, model: LatencyModel, path: Path) -> tuple[Evaluation, list[int]]:
    """Predict the latency of measured networks.

    Returns:
        The evaluation, and the index of each predicted network; unreadable ONNX files have no prediction.
    """
    if isinstance(model, GeneLatencyModel):
        assert collection.space is not None
        model.check_space(collection.space, path)
        if model.source != "rows":
            raise DataError(f"{path} was fitted to a table of average latencies; give a model fitted to measurements")
        architectures = [network.architecture for network in collection.networks if network.architecture is not None]
        predicted, deviation = model.predict_with_std(architectures)
        learned = known_among(model.info, [fingerprint(row) for row in model.space.rows(architectures)])
        places = list(range(len(architectures)))
    else:
        data = read_dataset(collection.path, collection.runtime)
        place = {network.name: index for index, network in enumerate(collection.networks)}
        places = [place[name] for name in data.names.tolist()]
        predicted, deviation = model.predict_with_std(data.graphs)
        learned = known_among(model.info, fingerprints(data.graphs))
    families = np.array([collection.networks[index].family for index in places])
    measured = collection.values("latency_ms")[places]
    return Evaluation(measured, np.asarray(predicted), np.asarray(deviation), families, learned), places


@dataclass(frozen=True)
class RecordEvaluation:
    """Predictions for records whose values are known."""

    model_path: Path
    data_path: Path
    model: AccuracyModel
    reader: Reader | None
    target: str
    by: str | None
    lower_is_better: bool
    records: Records
    evaluation: Evaluation
    extrapolated: NDArray[np.bool_]
    """Mask ``(n,)`` of records with an operation that no training graph has."""

    @property
    def error(self) -> Floats:
        """Errors ``(n,)``: predicted minus known value, in the unit of the value."""
        return np.asarray(self.evaluation.predicted - self.evaluation.measured, np.float64)

    def best(self, count: int) -> list[int]:
        """Return the indices of the ``count`` best predictions, best first."""
        return list(map(int, self._order(self.evaluation.predicted)[:count]))

    def rank(self) -> NDArray[np.int64]:
        """Return the rank ``(n,)`` of each known value, 1 for the best."""
        return np.asarray(np.argsort(self._order(self.evaluation.measured), kind="stable") + 1, np.int64)

    def _order(self, values: Floats) -> NDArray[np.int64]:
        return np.argsort(values if self.lower_is_better else -values, kind="stable")

    def quality(self, mask: NDArray[np.bool_]) -> dict[str, Any]:
        """Return errors and rank correlations for a mask ``(n,)``; None if undefined."""
        predicted, measured = self.evaluation.predicted[mask], self.evaluation.measured[mask]
        count = len(measured)
        top = self._order(measured)[: max(2, round(count / 10))]
        return {
            "scored": count,
            "tau": kendall_tau(predicted, measured) if count > 1 else None,
            "tau_best": kendall_tau(predicted[top], measured[top]) if count >= _FEW else None,
            "mae": float(np.abs(predicted - measured).mean()),
            "mape": mape(predicted, measured) if self.evaluation.measured.min() > 0 else None,
            "inside": float(100 * self.evaluation.inside[mask].mean()) if self.evaluation.has_deviation else None,
            "bias": float((predicted - measured).mean()),
        }

    def coverage(self) -> dict[float, float]:
        """Return expected -> observed coverage of normal prediction intervals, in percent."""
        mask = self.evaluation.scored & (self.evaluation.deviation > 0)
        off = np.abs(self.error[mask]) / self.evaluation.deviation[mask]
        return {float(share): float(100 * (off <= ndtri((1 + share / 100) / 2)).mean()) for share in _EXPECTED}

    def operation(self, op: int) -> str:
        """Return the name of an operation; its number if the name is unknown."""
        names = () if self.reader is None else self.reader.operations
        return names[op] if op < len(names) else f"operation {op}"


def evaluate_records(
    model: str | Path,
    data: str | Path,
    *,
    reader: str | None = None,
    target: str | None = None,
    by: str | None = None,
    lower_is_better: bool = False,
    device: str = "cpu",
) -> RecordEvaluation:
    """Predict all records of a file and compare the predictions with known values.

    Args:
        model: file written by ``nas-ext lab predictor train``.
        data: JSON Lines file like the training data.
        reader: graph reader, see ``nas-ext lab predictor train --help``; default: that of the training.
        target: field of the known value; default: that of the training.
        by: field for grouping; default: the first of :data:`GROUPS` that all records have.
    """
    predictor = check_unpriced(load_accuracy_model(model, device, "ignore"), model)
    trained_with = predictor.info.get("reader")
    if trained_with and reader and reader != trained_with:
        raise ConfigError(f"{model} was trained with reader {trained_with!r}; leave out --reader {reader}")
    name = trained_with or reader
    graph_reader = None if name is None else reader_for(str(name))
    field = target or str(predictor.info.get("target") or "target")
    records = read_records(data, graph_reader, field, predictor.proxies)
    count = len(records.graphs)
    if count < 2:
        raise DataError(f"{data} has {count} record; expected at least two")
    group = by or next((name for name in GROUPS if all(name in note for note in records.notes)), None)
    families = ["all"] * count if group is None else _groups(records.notes, group, data)
    predicted, deviation = predictor.predictions(records.graphs, proxies=records.proxies)
    deviation = np.zeros(count) if deviation is None else deviation
    learned = known_among(predictor.info, fingerprints(records.graphs))
    unseen = ~np.isin(records.graphs.ops, sorted(predictor.known))
    extrapolated = np.zeros(count, np.bool_)
    extrapolated[np.repeat(np.arange(count), records.graphs.sizes)[unseen]] = True
    evaluation = Evaluation(records.targets, predicted, deviation, np.array(families), learned)
    return RecordEvaluation(
        Path(model), Path(data), predictor, graph_reader, field, group, lower_is_better, records, evaluation,
        extrapolated,
    )  # fmt: skip


def _groups(notes: Sequence[Mapping[str, Any]], by: str, data: str | Path) -> list[str]:
    for number, note in enumerate(notes, 1):
        if by not in note:
            raise DataError(f"{data}, record {number} has no field {by!r} with a text or number; leave out --by")
    return [str(note[by]) for note in notes]
