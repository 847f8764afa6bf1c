"""A predictor held against a file of records whose value is known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from nas_core.errors import ConfigError, DataError
from nas_core.graph.fingerprints import fingerprints, known_among
from nas_core.latency.by_graph.nn_former import check_unpriced
from nas_core.predictor import AccuracyModel, Reader, kendall_tau, load_accuracy_model, mape, reader_for
from nas_core.predictor.files import Records, read_records
from nas_core.report.measured.judged import Judged

GROUPS = ("family", "group", "benchmark")
"""Fields by which records are grouped where all have one of them."""
_FEW = 20
"""Records from which on the best tenth is looked at: fewer than two have no order."""
_EXPECTED = (10, 20, 30, 40, 50, 60, 70, 80, 90, 95)


@dataclass(frozen=True)
class JudgedRecords:
    """All records with their predictions."""

    model_path: Path
    data_path: Path
    model: AccuracyModel
    reader: Reader | None
    target: str
    """The field of the known values."""
    by: str | None
    """The field by which records are grouped."""
    lower_is_better: bool
    records: Records
    judged: Judged
    guessed: NDArray[np.bool_]
    """Records with an operation that no training graph has."""

    @property
    def relative(self) -> bool:
        """Whether errors in percent mean something: all values are above 0."""
        return bool(self.judged.measured.min() > 0)

    @property
    def error(self) -> NDArray[np.float64]:
        """Predicted - measured, in the units of the target."""
        return np.asarray(self.judged.predicted - self.judged.measured, np.float64)

    def best(self, count: int) -> list[int]:
        """Places of the best predictions, the best first."""
        sign = 1 if self.lower_is_better else -1
        return [int(place) for place in np.argsort(sign * self.judged.predicted, kind="stable")[:count]]

    def rank(self) -> NDArray[np.int64]:
        """The place of each measurement among all, 1 for the best."""
        sign = 1 if self.lower_is_better else -1
        order = np.argsort(sign * self.judged.measured, kind="stable")
        ranks = np.empty(len(order), np.int64)
        ranks[order] = np.arange(1, len(order) + 1)
        return ranks

    def worst(self, count: int) -> list[int]:
        """Places of the largest errors among those that judge the predictor, the largest first."""
        return self.judged.worst(count, self.error)

    def quality(self, which: NDArray[np.bool_]) -> dict[str, Any]:
        """Numbers of some records; what cannot be computed is None."""
        predicted, measured = self.judged.predicted[which], self.judged.measured[which]
        count = len(measured)
        top = np.argsort(measured if self.lower_is_better else -measured, kind="stable")[: max(2, round(count / 10))]
        inside = self.judged.inside[which] if self.judged.spreads else None
        return {
            "judged": count,
            "tau": kendall_tau(predicted, measured) if count > 1 else None,
            "tau_best": kendall_tau(predicted[top], measured[top]) if count >= _FEW else None,
            "mae": float(np.abs(predicted - measured).mean()),
            "mape": mape(predicted, measured) if self.relative else None,
            "inside": None if inside is None else float(100 * inside.mean()),
            "bias": float((predicted - measured).mean()),
        }

    def calibration(self) -> dict[float, float]:
        """Expected -> found share of measurements inside a range around the prediction, in percent; the range holds
        the expected share where errors are normal with the predictor's spread."""
        which = self.judged.judging & (self.judged.spread > 0)
        off = np.abs(self.error[which]) / self.judged.spread[which]
        widths = {float(share): float(ndtri((1 + share / 100) / 2)) for share in _EXPECTED}
        return {share: float(100 * (off <= width).mean()) for share, width in widths.items()}

    def operation(self, op: int) -> str:
        """The name of an operation; its number where the reader has none."""
        names = () if self.reader is None else self.reader.operations
        return names[op] if op < len(names) else f"operation {op}"


def judged_records(
    model: str | Path,
    data: str | Path,
    *,
    reader: str | None = None,
    target: str | None = None,
    by: str | None = None,
    lower_is_better: bool = False,
    device: str = "cpu",
) -> JudgedRecords:
    """Predict all records of a file.

    Args:
        model: a file of ``nas-ext lab predictor train``. data: JSON Lines, as it learns from.
        reader: makes graphs of architectures; default: the one that the predictor was trained with.
        target: the field with the known value; default: the one that was learned.
        by: the field that groups records; default: ``family``, ``group`` or ``benchmark`` where all have one.
        lower_is_better: whether the best architectures have the lowest values.

    Raises:
        DataError: a file is missing or damaged, or a record lacks a graph or the value. ConfigError: another reader
            than the predictor was trained with, a latency model of whole networks, or a field that groups nothing.
        GraphError: a graph that the predictor is not made for.
    """
    predictor = check_unpriced(load_accuracy_model(model, device, "ignore"), model)
    kept = predictor.info.get("reader")
    if kept and reader and reader != kept:
        raise ConfigError(f"{model} was trained with reader {kept!r}, which it keeps; leave --reader {reader} out")
    name = kept or reader
    known_as = None if name is None else reader_for(str(name))
    field = target or str(predictor.info.get("target") or "target")
    records = read_records(data, known_as, field, predictor.proxies)
    if len(records.graphs) < 2:
        raise DataError(f"{data} holds one record; expected two at least to compare")
    groups = _groups(records, by, data)
    predicted, spread = predictor.predictions(records.graphs, proxies=records.proxies)
    spread = np.zeros(len(predicted)) if spread is None else spread
    learned = known_among(predictor.info, fingerprints(records.graphs))
    families = np.array(["all"] * len(predicted)) if groups is None else np.array(groups[1])
    judged = Judged(records.targets, predicted, spread, families, learned)
    return JudgedRecords(
        Path(model), Path(data), predictor, known_as, field, None if groups is None else groups[0], lower_is_better,
        records, judged, _guessed(predictor, records),
    )  # fmt: skip


def _groups(records: Records, by: str | None, data: str | Path) -> tuple[str, list[str]] | None:
    """The field, and each record's group."""
    fields: list[Mapping[str, Any]] = list(records.notes)
    for name in GROUPS if by is None else (by,):
        if all(name in note for note in fields):
            return name, [str(note[name]) for note in fields]
    if by is None:
        return None
    lacking = next(number for number, note in enumerate(fields, 1) if by not in note)
    raise DataError(f"{data}, record {lacking} has no field {by!r} with a text or a number; leave --by out")


def _guessed(predictor: AccuracyModel, records: Records) -> NDArray[np.bool_]:
    known = np.array(sorted(predictor.known))
    new = ~np.isin(records.graphs.ops, known)
    graph_of_node = np.repeat(np.arange(len(records.graphs)), records.graphs.sizes)
    found = np.zeros(len(records.graphs), np.bool_)
    found[graph_of_node[new]] = True
    return found
