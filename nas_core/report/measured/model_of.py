"""A latency model held against a collection: its predictions, and what it has learned of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nas_core.errors import DataError
from nas_core.files import real_path
from nas_core.graph.fingerprints import fingerprint, fingerprints, known_among
from nas_core.latency import GeneLatencyModel, GraphLatencyModel, LatencyModel, load_latency_model
from nas_core.latency.by_graph.dataset import read_dataset
from nas_core.report.measured.collection import Collection
from nas_core.report.measured.judged import Judged


@dataclass(frozen=True)
class AgainstModel:
    """A model's predictions of a collection, and what has to be said about them."""

    path: Path
    model: LatencyModel
    judged: Judged
    places: list[int]
    """Which network of the collection each prediction is of: ONNX files that cannot be read have none."""
    facts: Mapping[str, Any]
    notes: list[str]
    """What was learned and held out, and in what data and model differ; sentences."""

    def place_of(self, network: int) -> int | None:
        """The place of a network's prediction; None if it has none."""
        return self.places.index(network) if network in self.places else None


def opened_model(path: str | Path, collection: str | Path) -> LatencyModel:
    """The model of a file, of the sort that fits a folder of networks or a file of architectures.

    Raises:
        DataError: the file is missing, damaged, no latency model, or a model of the other sort.
    """
    return load_latency_model(path, "graph") if Path(collection).is_dir() else load_latency_model(path, "genes")


def against_model(collection: Collection, model: LatencyModel, path: str | Path) -> AgainstModel:
    """Predict all of a collection with a model, which was read from that file.

    Raises:
        SpaceError: a model of another space. DataError: one that reads averages, or no network can be read.
    """
    if isinstance(model, GeneLatencyModel):
        judged, places, learned_note = _by_genes(collection, model, path)
    else:
        assert isinstance(model, GraphLatencyModel)
        judged, places, learned_note = _by_graph(collection, model)
    facts = {
        "model": str(real_path(path)),
        "kind": f"{model.name}, by {'genes of one space' if model.by == 'genes' else 'graphs of any networks'}",
        "learned": _learned(model),
        "its own test": _own_quality(model),
        "measured on": (model.info.get("machine") or {}).get("device_name"),
        "of runtime": model.info.get("runtime"),
    }
    notes = [learned_note, *_differences(collection, model)]
    told = {name: value for name, value in facts.items() if value not in (None, "")}
    return AgainstModel(Path(path), model, judged, places, told, [note for note in notes if note])


def _by_genes(collection: Collection, model: GeneLatencyModel, path: str | Path) -> tuple[Judged, list[int], str]:
    assert collection.space is not None
    model.check_space(collection.space, path)
    if model.source != "rows":
        raise DataError(
            f"{path} was fitted to a table of averages, which are no architectures; fit a model to measurements"
        )
    architectures = [one.architecture for one in collection.networks if one.architecture is not None]
    predicted, spread = model.predict_with_spread(architectures)
    found = [fingerprint(row) for row in model.space.rows(architectures)]
    learned = known_among(model.info, found)
    judged = _judged(collection, list(range(len(architectures))), predicted, spread, learned)
    return judged, list(range(len(architectures))), _learned_note(judged, "architectures", model.info)


def _by_graph(collection: Collection, model: GraphLatencyModel) -> tuple[Judged, list[int], str]:
    data = read_dataset(collection.path, collection.runtime)
    place = {one.name: index for index, one in enumerate(collection.networks)}
    places = [place[name] for name in data.names.tolist()]
    predicted, spread = model.predict_with_spread(data.graphs)
    learned = known_among(model.info, fingerprints(data.graphs))
    judged = _judged(collection, places, predicted, spread, learned)
    unread = len(collection.networks) - len(places)
    note = _learned_note(judged, "networks", model.info)
    return judged, places, note + (f" {unread} ONNX files cannot be read and have no prediction." if unread else "")


def _judged(collection: Collection, places: list[int], predicted: Any, spread: Any, learned: Any) -> Judged:
    return Judged(
        collection.values("latency_ms")[places],
        np.asarray(predicted, np.float64),
        np.asarray(spread, np.float64),
        np.array([collection.networks[place].family for place in places]),
        learned,
    )


def _learned_note(judged: Judged, what: str, info: Mapping[str, Any]) -> str:
    count = len(judged.measured)
    if judged.learned is None:
        return (
            f"Which of these {what} the model has learned is not known: its file does not say. Errors on {what} that"
            " it has learned flatter."
        )
    learned = int(judged.learned.sum())
    if not learned:
        return f"The model has learned none of these {count} {what}: all of them judge it."
    if judged.held_out:
        return (
            f"The model has learned {learned} of these {count} {what}; the other {count - learned} judge it, and all"
            " errors below are theirs unless said otherwise. Points of learned ones are pale."
        )
    return (
        f"The model has learned all of these {count} {what}. Errors on what was learned flatter: judge it by"
        " measurements of its own, or by what its training says of those it held out (its own test, above)."
    )


def _learned(model: LatencyModel) -> str | None:
    count = model.info.get("networks") or model.info.get("measurements")
    if not count:
        return None
    families = model.info.get("families")
    if isinstance(families, dict) and families:
        return f"{count} networks: {', '.join(f'{name} {number}' for name, number in families.items())}"
    return f"{count} measurements"


def _own_quality(model: LatencyModel) -> str | None:
    """What the training said about networks that it held out."""
    held_out, metrics = model.info.get("held_out"), model.info.get("metrics")
    if isinstance(held_out, dict) and "mape_percent" in held_out:
        return f"mean error {held_out['mape_percent']:.2f} % on {held_out.get('networks')} networks that it held out"
    if isinstance(metrics, dict) and metrics.get("mape_percent") is not None:
        twin = "by a first fit without them"
        return f"mean error {metrics['mape_percent']:.2f} % on {metrics.get('count')} held-out measurements, {twin}"
    return None


def _differences(collection: Collection, model: LatencyModel) -> list[str]:
    """What makes the numbers of data and model mean different things."""
    notes = []
    then, now = model.info.get("machine") or {}, collection.machine
    for name, what in (("device_name", "on another machine"), ("threads", "with another number of threads")):
        if then.get(name) and now.get(name) and then[name] != now[name]:
            notes.append(f"The model was measured {what}: {then[name]}, the data on {now[name]}.")
    runtime = model.info.get("runtime")
    if model.by == "graph" and runtime and runtime != collection.runtime:
        notes.append(f"The model predicts {runtime}, the data are of {collection.runtime}.")
    own = (model.info.get("settings") or {}).get("workload")
    other = {n.removeprefix("settings.workload."): v for n, v in collection.details.items() if ".workload." in n}
    if model.by == "genes" and isinstance(own, Mapping) and other and _flat_differ(own, other):
        notes.append("The model was fitted to another workload than these measurements.")
    return notes


def _flat_differ(own: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    plain = {name: value for name, value in own.items() if not isinstance(value, Mapping)}
    return any(other.get(name) != value for name, value in plain.items())
