"""Files of graphs and predictions, and the split into training and held-out graphs."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nas_core.errors import ConfigError, DataError, NasExtError
from nas_core.files.journal import read_jsonl
from nas_core.files.reading import real_path
from nas_core.files.writing import check_replaceable, write_atomic
from nas_core.graph import Graph, GraphError, Graphs
from nas_core.locks import file_lock
from nas_core.predictor.readers import Reader, reader_names

MIN_GRAPHS = 2
OUTPUTS = (".jsonl", ".csv")
COLUMNS = ("record", "prediction", "std")


def holdout_split(graphs: Graphs, share: float, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return ascending indices of training and held-out graphs. Equal graphs are on the same side.

    Args:
        share: fraction of held-out graphs.
    """
    if not 0 <= share < 1:
        raise ConfigError(f"holdout is {share}; expected a fraction from 0 to below 1, such as 0.1")
    if not share:
        return np.arange(len(graphs)), np.arange(0)
    group = graphs.distinct()[1]
    order = np.random.default_rng([seed, 2]).permutation(group.max() + 1)
    counts = np.cumsum(np.bincount(group)[order])
    held_out = np.isin(group, order[: np.searchsorted(counts, max(MIN_GRAPHS, round(share * len(graphs)))) + 1])
    if held_out.sum() < MIN_GRAPHS or (~held_out).sum() < MIN_GRAPHS:
        raise DataError(
            f"got {len(graphs)} graphs, {len(order)} of them different, of which {held_out.sum()} are held out;"
            f" expected at least {MIN_GRAPHS} held-out and {MIN_GRAPHS} training graphs: give more records, or"
            " --holdout 0"
        )
    return np.flatnonzero(~held_out), np.flatnonzero(held_out)


@dataclass(frozen=True)
class Records:
    """Graphs of a file, with targets and other fields (``notes``)."""

    graphs: Graphs
    targets: NDArray[np.float64]
    """``(G,)``, or ``(0,)`` without targets"""
    notes: Sequence[Mapping[str, Any]]

    def take(self, indices: NDArray[np.int64]) -> Records:
        return Records(self.graphs.take(indices), self.targets[indices], [self.notes[i] for i in indices])


def read_records(path: str | Path, reader: Reader | None = None, target: str | None = None) -> Records:
    """Read a JSON Lines file with a ``graph`` (:meth:`Graph.to_dict`) or an ``architecture`` in each line.

    Args:
        reader: reader of architectures.
        target: field of the target; None: the records have no target.
    """
    graphs: list[Graph] = []
    targets: list[float] = []
    notes: list[dict[str, Any]] = []
    for number, record in enumerate(read_jsonl(path), 1):
        try:
            graphs.append(_graph(record, reader))
            if target is not None:
                targets.append(_target(record, target))
        except NasExtError as error:
            raise DataError(f"{path}, record {number}: {error}") from error
        except (TypeError, ValueError, OverflowError) as error:
            raise DataError(f"{path}, record {number}: the graph cannot be read ({error})") from error
        notes.append({k: v for k, v in record.items() if k != "graph" and isinstance(v, str | int | float)})
    if not graphs:
        raise DataError(f"{path} has no records; expected a JSON object with a graph or an architecture in each line")
    try:
        joined = Graphs.of(graphs)
    except GraphError as error:
        raise DataError(f"{path}: {error}") from error
    return Records(joined, np.array(targets), notes)


def _graph(record: Mapping[str, Any], reader: Reader | None) -> Graph:
    if ("graph" in record) == ("architecture" in record):
        keys = ", ".join(map(repr, record)) or "none"
        raise DataError(f"expected either a field 'graph' or a field 'architecture'; got {keys}")
    if "architecture" in record:
        if reader is None:
            raise DataError(f"an architecture needs a reader; give --reader with one of {', '.join(reader_names())}")
        return reader.from_json(record["architecture"])
    graph = Graph.from_dict(record["graph"])
    if reader is not None and int(graph.ops.max()) >= len(reader.operations):
        indices = f"0 to {len(reader.operations) - 1} ({', '.join(reader.operations)})"
        raise GraphError(f"operation index is {int(graph.ops.max())}; expected {indices} of reader {reader.name!r}")
    return graph if reader is None else reader.with_operations(graph)


def _target(record: Mapping[str, Any], name: str) -> float:
    value = record.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise DataError(
            f"field {name!r} is {json.dumps(value)[:60]}; expected a number: give the field of the target with --target"
            f" (fields are {', '.join(map(repr, record))}), and remove records without a measured value"
        )
    return float(value)


def new_file(path: Path, force: bool, inputs: Iterable[Path] = (), suffixes: Sequence[str] = ()) -> Path:
    if suffixes and path.suffix not in suffixes:
        raise ConfigError(f"output is {path}; expected a name that ends in {' or '.join(suffixes)}")
    if path.is_dir():
        raise ConfigError(f"output {path} is a folder; give the name of a file")
    check_replaceable(path)
    if any(real_path(path) == real_path(used) for used in inputs):
        raise ConfigError(f"output {path} is also an input, which would be replaced; give another name")
    if path.exists() and not force:
        raise ConfigError(f"{path} exists; give another name, or --force to replace it")
    return path


def only_training(out: Path) -> AbstractContextManager[int]:
    """Lock the file ``out`` against training by other processes."""
    return file_lock(out.with_name(f"{out.name}.lock"), f"is training {out}", "give another name")


def prediction_rows(
    records: Records, predicted: NDArray[np.float64], std: NDArray[np.float64] | None
) -> list[dict[str, Any]]:
    """Return a row for each record: its number from 1, other fields, prediction, and standard deviation if given."""
    columns = {"prediction": predicted.tolist()} | ({} if std is None else {"std": std.tolist()})
    rows = []
    for index, note in enumerate(records.notes):
        notes = {f"input_{name}" if name in COLUMNS else name: value for name, value in note.items()}
        rows.append({"record": index + 1, **notes, **{name: column[index] for name, column in columns.items()}})
    return rows


def write_predictions(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write rows as JSON Lines, or as CSV if the name ends in .csv."""
    if path.suffix == ".csv":
        text = io.StringIO()
        names = list(dict.fromkeys(name for row in rows for name in row))
        table = csv.writer(text, lineterminator="\n")
        table.writerow(names)
        table.writerows([row.get(name, "") for name in names] for row in rows)
        write_atomic(path, text.getvalue())
    else:
        write_atomic(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
