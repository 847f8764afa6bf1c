"""Results of networks that were trained on their own, read from JSON Lines and checked."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nas_core.errors import ArchitectureError, DataError
from nas_core.files import read_bytes, read_jsonl
from nas_core.space import Architecture, SearchSpace


@dataclass(frozen=True)
class TrainedNetworks:
    """Networks with what they reached when trained on their own."""

    architectures: list[Architecture]
    standalone: list[float]
    test_set: str | None
    """The data that they were tested on, where the records say it"""


def read_trained(
    paths: Sequence[str | Path], space: SearchSpace, metric: str, test_set: str | None = None
) -> TrainedNetworks:
    """Read records such as ``{"genes": {..}, "metrics": {"test_bleu": 26.1}, "test_set": "newstest2014"}``, one in a
    line: ``genes`` as architecture files and journals of searches have them (or ``architecture``, as the file
    ``standalone.jsonl`` of ``nas-ext lab study gap`` has them), the set where it is known.

    Args:
        space: of the supernet; every architecture has to lie in it.
        test_set: what all records have to be of that name one.

    Raises:
        DataError: a file is missing, empty or no JSON Lines; a record has no architecture, one outside the space, no
            result yet, one that is no number, or one of another test set; a network is there twice. The message names
            the line.
    """
    found: dict[Architecture, float] = {}
    where: dict[Architecture, str] = {}
    named = ("--test-set", test_set) if test_set is not None else None
    for path in paths:
        records = read_jsonl(path)
        if not records:
            raise DataError(f"{path} holds no trained networks; expected one JSON object per line")
        for number, record in zip(_lines(path, len(records)), records, strict=True):
            line = f"{path}, line {number}"
            architecture = _architecture(record, space, line)
            if architecture in found:
                raise DataError(f"{line}: network {architecture.key} stands in {where[architecture]} too; keep one")
            if record.get("test_set") is not None:
                said = str(record["test_set"])
                if named is not None and said != named[1]:
                    raise DataError(
                        f"{line} is a result of test set {said!r}, {named[0]} of {named[1]!r}; take results of one set"
                    )
                named = named or (line, said)
            found[architecture] = _result(record, metric, f"{line}: network {architecture.key}")
            where[architecture] = line
    return TrainedNetworks(list(found), list(found.values()), named[1] if named else None)


def _lines(path: str | Path, records: int) -> list[int]:
    """The numbers of the lines that records stand in.

    Raises:
        DataError: the last line is none; a person wrote it, so that it is not passed over.
    """
    found = [number for number, line in enumerate(read_bytes(path).split(b"\n"), 1) if line.strip()]
    if len(found) > records:
        raise DataError(f"{path}, line {found[-1]} is not a JSON object; complete it, or remove the line")
    return found


def _architecture(record: Mapping[str, Any], space: SearchSpace, line: str) -> Architecture:
    genes = record.get("genes", record.get("architecture"))  # as studies of a gap call it
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
    known = metrics if isinstance(metrics, Mapping) else {}
    if metric not in known and any(value is not None for value in known.values()):
        raise DataError(f"{line} has no {metric}, it has {', '.join(map(str, known))}; choose one with --metric")
    value = known.get(metric)
    if value is None:
        why = f", its training failed ({record['error']})" if record.get("error") else ""
        raise DataError(f"{line} has no {metric} yet{why}; fill its result in, or remove the line")
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise DataError(f"{line} has {metric} {str(value)[:40]!r}; expected a number")
    return float(value)
