"""Graphs and targets from JSON Lines, predictions into a file."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nas_core.errors import ConfigError, DataError, NasExtError
from nas_core.files import check_replaceable, csv_cell, read_jsonl, real_path, write_atomic
from nas_core.graph import Graph, GraphError, Graphs
from nas_core.locks import only_process
from nas_core.predictor.readers import Reader, reader_names

LEAST = 2
"""Graphs on either side."""


def holdout_split(graphs: Graphs, share: float, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Ascending indices of training and held-out graphs. Equal graphs stay on one side: a graph that was learned says
    nothing about graphs that were not.

    Args:
        share: of all graphs to hold out, roughly where many are equal; 0: none.

    Raises:
        ConfigError: the share is not from 0 to below 1.
        DataError: fewer than two graphs would be left on a side.
    """
    if not 0 <= share < 1:
        raise ConfigError(f"holdout is {share}; expected a share from 0 to below 1, such as 0.1")
    everything = np.arange(len(graphs))
    if not share:
        return everything, everything[:0]
    group = graphs.distinct()[1]
    order = np.random.default_rng([seed, 2]).permutation(group.max() + 1)
    reached = np.cumsum(np.bincount(group)[order])
    taken = order[: np.searchsorted(reached, max(LEAST, round(share * len(graphs)))) + 1]
    held_out = np.isin(group, taken)
    if held_out.sum() < LEAST or (~held_out).sum() < LEAST:
        raise DataError(
            f"{len(graphs)} graphs, {len(order)} of them different, of which {held_out.sum()} would be held out;"
            f" expected {LEAST} or more on either side: give more records, or --holdout 0 to hold out none"
        )
    return everything[~held_out], everything[held_out]


MOST_NODES = 4000
"""How large a graph may be: some predictors compare every node with every other, which takes memory with the square."""
OUTPUTS = (".jsonl", ".csv")
OURS = ("record", "prediction", "spread")


@dataclass(frozen=True)
class Records:
    """What a file holds, record by record."""

    graphs: Graphs
    targets: NDArray[np.float64]
    """``(G,)``; ``(0,)`` where they were not asked for"""
    notes: Sequence[Mapping[str, Any]]
    """Texts and numbers that stand beside each graph"""
    proxies: Sequence[Mapping[str, float]] | None = None
    """Scores of each graph by name of the proxy, where they were asked for"""

    def take(self, indices: NDArray[np.int64]) -> Records:
        """Those records, of which targets were asked for."""
        notes, scores = ([each[i] for i in indices] for each in (self.notes, self.proxies or self.notes))
        return Records(self.graphs.take(indices), self.targets[indices], notes, scores if self.proxies else None)


def read_records(
    path: str | Path, reader: Reader | None = None, target: str | None = None, proxies: Sequence[str] = ()
) -> Records:
    """Read JSON Lines whose records have a ``graph`` (``{"ops": .., "edges": ..}``, as :meth:`Graph.to_dict` writes
    it) or an ``architecture`` (what the reader takes).

    Args:
        reader: makes graphs of architectures; operations of graphs must be among its operations too.
        target: the field with the number to learn.
        proxies: names in the field ``proxies`` (``{"nwot": 371.2, ..}``, as ``nas-ext lab proxies`` writes it).

    Raises:
        DataError: the file is missing, empty or no JSON Lines, or a record has no graph, no target, or a wrong one;
            the message says which record and why.
    """
    graphs: list[Graph] = []
    targets: list[float] = []
    notes: list[dict[str, Any]] = []
    scores: list[dict[str, float]] = []
    for number, record in enumerate(read_jsonl(path), 1):
        try:
            graphs.append(_graph(record, reader))
            if target is not None:
                targets.append(_target(record, target))
            scores.append(_scores(record, proxies))
        except NasExtError as error:
            raise DataError(f"{path}, record {number}: {error}") from error
        except (TypeError, ValueError, OverflowError) as error:
            raise DataError(f"{path}, record {number}: the graph cannot be read ({error})") from error
        notes.append({k: v for k, v in record.items() if k != "graph" and isinstance(v, str | int | float)})
    if not graphs:
        raise DataError(f"{path} holds no records; expected one JSON object per line with a graph or an architecture")
    try:
        together = Graphs.of(graphs)
    except GraphError as error:
        raise DataError(f"{path}: {error}") from error
    return Records(together, np.array(targets), notes, scores if proxies else None)


def _graph(record: Mapping[str, Any], reader: Reader | None) -> Graph:
    if ("graph" in record) == ("architecture" in record):
        got = ", ".join(map(repr, record)) or "none"
        raise DataError(f"expected either a field 'graph' or a field 'architecture'; got {got}")
    if "architecture" in record:
        if reader is None:
            raise DataError(f"an architecture needs a reader; name it with --reader: {', '.join(reader_names())}")
        return reader.from_json(record["architecture"])
    graph = Graph.from_dict(record["graph"])
    if len(graph) > MOST_NODES:
        raise GraphError(f"a graph has {len(graph)} nodes; predictors read {MOST_NODES} at most")
    if reader is not None and int(graph.ops.max()) >= len(reader.operations):
        known = f"0 to {len(reader.operations) - 1} ({', '.join(reader.operations)})"
        raise GraphError(f"operation index {int(graph.ops.max())}; reader {reader.name!r} has {known}")
    return graph if reader is None else reader.described(graph)


def _target(record: Mapping[str, Any], name: str) -> float:
    if name not in record:
        fields = ", ".join(map(repr, record))
        raise DataError(f"no field {name!r} with the number to learn; it has {fields}: name one with --target")
    value = record[name]
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise DataError(f"{name} is {json.dumps(value)[:60]}; expected a number")
    if not math.isfinite(value):
        raise DataError(f"{name} is {value}; remove the records without a measured value")
    return float(value)


def _scores(record: Mapping[str, Any], proxies: Sequence[str]) -> dict[str, float]:
    given = record.get("proxies")
    found = given if isinstance(given, Mapping) else {}
    for name in proxies:
        value = found.get(name)
        if isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value):
            has = f"proxies {', '.join(map(str, found))}" if found else "no field 'proxies'"
            raise DataError(
                f"no score of proxy {name!r}, which the predictor reads; it has {has}: 'nas-ext lab proxies' makes it"
            )
    return {name: float(found[name]) for name in proxies}


def new_file(path: Path, force: bool, inputs: Iterable[Path] = (), suffixes: Sequence[str] = ()) -> Path:
    """The path, if a result may be written there.

    Raises:
        ConfigError: it exists and ``force`` is not given, it is one of the inputs or a folder, or ends in none of the
            suffixes. DataError: it is a pipe, a socket or a device.
    """
    if suffixes and path.suffix not in suffixes:
        raise ConfigError(f"output {path}: expected a name that ends in {' or '.join(suffixes)}")
    if path.is_dir():
        raise ConfigError(f"output {path} is a folder; give the name of a file")
    check_replaceable(path)
    if any(real_path(path) == real_path(given) for given in inputs):
        raise ConfigError(f"output {path} is also an input, which is kept; give another name")
    if path.exists() and not force:
        raise ConfigError(f"{path} exists; give another name, or --force to replace it")
    return path


def only_training(out: Path) -> AbstractContextManager[int]:
    """No other process trains what will be ``out`` in this block: two would take each other's unfinished networks.

    Raises:
        ConfigError: one does.
    """
    return only_process(out.with_name(f"{out.name}.lock"), f"is training {out}", "give another name")


def prediction_rows(
    records: Records, predicted: NDArray[np.float64], more: Mapping[str, NDArray[np.float64]]
) -> list[dict[str, Any]]:
    """One row for each record, in their order: its number from 1, its notes, its prediction, and what else is said of
    it, such as its spread, by name. A note that has one of these names is called ``input_record`` and so on."""
    taken = {*OURS, *more}
    columns = {"prediction": predicted.tolist(), **{name: values.tolist() for name, values in more.items()}}
    return [
        {"record": number, **_beside(note, taken), **{name: column[number - 1] for name, column in columns.items()}}
        for number, note in enumerate(records.notes, 1)
    ]


def _beside(note: Mapping[str, Any], taken: Collection[str]) -> dict[str, Any]:
    return {f"input_{name}" if name in taken else name: value for name, value in note.items()}


def write_predictions(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write the rows as JSON Lines, or as a table if the name ends in .csv; a field that a row lacks is empty there.

    Raises:
        NasExtError: the file cannot be written.
    """
    if path.suffix == ".csv":
        text = io.StringIO()
        names = list(dict.fromkeys(name for row in rows for name in row))
        table = csv.writer(text, lineterminator="\n")
        table.writerow(map(csv_cell, names))
        table.writerows([csv_cell(row.get(name, "")) for name in names] for row in rows)
        write_atomic(path, text.getvalue())
    else:
        write_atomic(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
