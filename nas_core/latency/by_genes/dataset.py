"""Latency measurements of one search space: JSON Lines files, and HAT's latency tables."""

from __future__ import annotations

import csv
import io
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nas_core.errors import ConfigError, DataError, SpaceError
from nas_core.files.journal import append_jsonl
from nas_core.files.reading import read_bytes
from nas_core.latency.journal import check_conditions, read_journal
from nas_core.latency.protocol import Measurement, is_positive
from nas_core.space import Architecture, SearchSpace, get_space
from nas_core.space.files import space_from_dict, space_to_dict

FORMAT = "nas-ext/latency-data"
VERSION = 1
_GENES = {
    "encoder_embed_dim": "encoder.embed_dim",
    "encoder_layer_num": "encoder.layers",
    "encoder_ffn_embed_dim_avg": "encoder.ffn_dim",
    "encoder_self_attention_heads_avg": "encoder.self_heads",
    "decoder_embed_dim": "decoder.embed_dim",
    "decoder_layer_num": "decoder.layers",
    "decoder_ffn_embed_dim_avg": "decoder.ffn_dim",
    "decoder_self_attention_heads_avg": "decoder.self_heads",
    "decoder_ende_attention_heads_avg": "decoder.cross_heads",
    "decoder_arbitrary_ende_attn_avg": "decoder.arbitrary_cross",
}
_PARTS = ("latency_mean_encoder", "latency_mean_decoder")
COLUMNS = (*_GENES, *_PARTS, "latency_std_encoder", "latency_std_decoder")
"""Columns of HAT's latency tables; the last two are optional and not used."""


@dataclass(frozen=True)
class LatencyData:
    """Latencies of n architectures of one search space."""

    space: SearchSpace
    source: str
    """Encoding in ``inputs``: ``rows`` (option indices) or ``summary`` (averages over layers, as in HAT's tables)."""
    inputs: NDArray[Any]
    """``(n, slots)`` or ``(n, choices)``."""
    latency_ms: NDArray[np.float64]
    """``(n,)``, corrected for changes of machine speed if a reference was measured."""
    info: dict[str, Any] = field(default_factory=dict)
    """``machine``, ``settings`` and ``reference_ms`` of the measurement, if known."""

    def __len__(self) -> int:
        return len(self.latency_ms)


@dataclass
class LatencyDataset:
    """JSON Lines file of measurements, one line per architecture.

    A line has ``index``, ``time`` (seconds since 1970), ``key`` and ``genes`` of the architecture, ``latency_ms``
    (corrected for changes of machine speed), ``<component>_ms`` for each component of a pass, such as ``encoder``, and
    fields of :class:`Measurement`: ``raw_ms`` (uncorrected), ``reference_ms``, ``std_ms`` and ``mad_ms``.
    """

    path: Path
    space: SearchSpace
    settings: dict[str, Any]
    machine: dict[str, Any]
    reference_ms: float
    """Time of a pass of the reference workload when the file was created."""
    records: list[dict[str, Any]] = field(default_factory=list)

    @classmethod
    def create(
        cls, path: Path, space: SearchSpace, settings: dict[str, Any], machine: dict[str, Any], reference_ms: float
    ) -> LatencyDataset:
        """Create a file and write its header.

        Args:
            settings: ``workload``, ``timing`` and ``seed``.
        """
        header = {
            "format": FORMAT,
            "version": VERSION,
            "space": space_to_dict(space),
            "settings": settings,
            "machine": machine,
            "reference_ms": reference_ms,
        }
        append_jsonl(path, header)
        return cls(path, space, settings, machine, reference_ms)

    @classmethod
    def read(cls, path: str | Path) -> LatencyDataset:
        header, *records = read_journal(Path(path), FORMAT, VERSION, "latency measurements", "nas-ext latency collect")
        try:
            for number, record in enumerate(records, start=2):
                if not (is_positive(record["latency_ms"]) and is_positive(record["reference_ms"]) and record["genes"]):
                    raise ValueError(f"line {number}")
            space = space_from_dict(header["space"], str(path))
            return cls(
                Path(path), space, dict(header["settings"]), dict(header["machine"]), header["reference_ms"], records
            )
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise DataError(f"{path} is damaged ({error}); remove the line, or measure again") from None

    def check_match(self, space: SearchSpace, settings: Mapping[str, Any], machine: Mapping[str, Any]) -> None:
        """Raise a ConfigError if the file has another search space, other settings or another machine."""
        if space != self.space:
            raise ConfigError(
                f"{self.path} holds measurements of another space ({self.space.name!r}); give another file"
            )
        check_conditions(self.path, (self.settings, self.machine), (settings, machine), "file")

    def append(self, architecture: Architecture, measurement: Measurement) -> None:
        latency_ms = measurement.corrected_ms(self.reference_ms)
        scale = latency_ms / measurement.raw_ms
        record = {
            "index": len(self.records),
            "time": time.time(),
            "key": architecture.key,
            "genes": architecture.to_dict(),
            "latency_ms": latency_ms,
            **{f"{name}_ms": value * scale for name, value in measurement.components_ms.items()},
            "raw_ms": measurement.raw_ms,
            "std_ms": measurement.std_ms,
            "mad_ms": measurement.mad_ms,
            "reference_ms": measurement.reference_ms,
        }
        append_jsonl(self.path, record)
        self.records.append(record)

    def architectures(self) -> list[Architecture]:
        return [Architecture(record["genes"]) for record in self.records]

    def data(self) -> LatencyData:
        """Return the measurements, scaled to the median speed of the machine."""
        if not self.records:
            raise DataError(f"{self.path} holds no measurement yet; run 'nas-ext latency collect'")
        rows = self.space.rows(self.architectures())
        state_ms = float(np.median([record["reference_ms"] for record in self.records]))
        latency = np.array([record["latency_ms"] for record in self.records]) * (state_ms / self.reference_ms)
        info = {"machine": self.machine, "settings": self.settings, "reference_ms": state_ms}
        return LatencyData(self.space, "rows", rows, latency, info)


def load_latency_data(path: str | Path, space: SearchSpace | None = None) -> LatencyData:
    """Load measurements of ``nas-ext latency collect`` (.jsonl) or one of HAT's latency tables (.csv).

    Args:
        space: search space of the HAT table; None: ``hat_wmt14_en_de``.
    """
    suffix = Path(path).suffix.lower()
    if suffix == ".csv":
        return hat_latencies(_csv(path), space or get_space("hat_wmt14_en_de"), str(path))
    if suffix != ".jsonl":
        raise DataError(f"{path}: expected measurements as .jsonl (nas-ext latency collect), or a HAT table as .csv")
    return LatencyDataset.read(path).data()


def hat_latencies(columns: Mapping[str, NDArray[np.float64]], space: SearchSpace, name: str) -> LatencyData:
    """Return the latencies of one of HAT's tables.

    A row has ten averages over the layers of an architecture, and its encoder and decoder latency in ms, which are
    added.

    Args:
        columns: the table's columns by name.
        name: name of the table, for error messages and provenance.
    """
    names = [choice.name for choice in space.choices]
    if sorted(names) != sorted(_GENES.values()):
        raise SpaceError(
            f"space {space.name!r} does not have the ten genes of HAT's tables; give space hat_wmt14_en_de"
        )
    if missing := [column for column in (*_GENES, *_PARTS) if column not in columns]:
        raise DataError(f"{name} has no column {missing[0]!r}; HAT's tables have {', '.join(COLUMNS)}")
    by_gene = {gene: columns[column] for column, gene in _GENES.items()}
    averages = np.stack([by_gene[gene] / space.choice(gene).unit for gene in names], axis=1)
    latency = columns[_PARTS[0]] + columns[_PARTS[1]]
    info = {"machine": {"table": Path(name).stem}, "settings": {}, "reference_ms": None}
    return LatencyData(space, "summary", averages, latency, info)


def _csv(path: str | Path) -> dict[str, NDArray[np.float64]]:
    try:
        header, *rows = csv.reader(io.StringIO(read_bytes(path).decode("utf-8"), newline=""))
        values = np.array([row for row in rows if row], np.float64)
        return {name.strip(): column for name, column in zip(header, values.T, strict=True)}
    except (ValueError, csv.Error) as error:  # also bytes that are no text, and rows of unequal length
        raise DataError(f"{path} is not a CSV table of numbers ({error}); give one of HAT's tables") from None
