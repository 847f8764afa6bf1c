"""The file of measurements: one header, then one record for each architecture, appended as it is measured."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from nas_core.differences import check_same_settings
from nas_core.errors import ConfigError, DataError
from nas_core.files import append_jsonl, read_jsonl
from nas_core.latency.by_genes.data import LatencyData
from nas_core.latency.clock_state import told_states
from nas_core.latency.protocol import Measurement
from nas_core.latency.timing import checked_settings, reference_of
from nas_core.space import Architecture, SearchSpace, space_from_dict, space_to_dict

FORMAT = "nas-ext/latency-data"
VERSION = 1

_log = logging.getLogger(__name__)


@dataclass
class LatencyDataset:
    """A file that grows by one line per architecture, and what is in it so far.

    Records have ``index``, ``time`` (seconds since 1970), ``key``, ``genes``, ``latency_ms`` (drift divided out, in
    the state of the header's ``reference_ms``) and its parts ``<part>_ms``, ``raw_ms`` (as measured), ``reference_ms``
    (around it), the spread of the passes ``std_ms`` and ``mad_ms`` and, where it could be read, the ``clock_state`` of
    the device.
    """

    path: Path
    space: SearchSpace
    settings: dict[str, Any]
    """Everything that decides what is measured and how; two collections with equal settings may be joined."""
    machine: dict[str, Any]
    reference_ms: float
    """What the reference took when the file was begun."""
    records: list[dict[str, Any]] = field(default_factory=list)

    @classmethod
    def begin(
        cls,
        path: str | Path,
        space: SearchSpace,
        settings: Mapping[str, Any],
        machine: Mapping[str, Any],
        reference_ms: float,
    ) -> LatencyDataset:
        """Write the header of a new file."""
        dataset = cls(Path(path), space, dict(settings), dict(machine), reference_ms)
        append_jsonl(path, dataset._header())
        return dataset

    @classmethod
    def read(cls, path: str | Path) -> LatencyDataset:
        """Read a file.

        Raises:
            DataError: it is missing, empty, or something else than such a file.
        """
        lines = read_jsonl(path)
        if not lines:
            raise DataError(f"{path} is empty; 'nas-ext latency collect' fills it")
        header, records = lines[0], lines[1:]
        if header.get("format") != FORMAT:
            raise DataError(
                f"{path} holds no latency measurements (format {header.get('format')!r}, expected {FORMAT!r})"
            )
        if not isinstance(header.get("version"), int) or header["version"] > VERSION:
            raise DataError(
                f"{path} has version {header.get('version')!r}, this release reads up to {VERSION}; upgrade"
            )
        try:
            space = space_from_dict(header["space"], str(path))
            settings = checked_settings(header["settings"])
            found = cls(Path(path), space, settings, dict(header["machine"]), reference_of(header["reference_ms"]))
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise DataError(f"{path}: the header lacks or garbles {error}; restore the file or collect anew") from None
        for number, record in enumerate(records, start=2):
            found._check(record, number)
        found.records = records
        return found

    def must_match(self, space: SearchSpace, settings: Mapping[str, Any], machine: Mapping[str, Any]) -> None:
        """Raise a ConfigError that names the first difference, if measurements under these settings may not be
        added."""
        if space != self.space:
            raise ConfigError(
                f"{self.path} holds measurements of another space ({self.space.name!r}); give another file"
            )
        for what, old, new in (("setting", self.settings, settings), ("machine", self.machine, machine)):
            advice = "go on with the former one, or give another file"
            check_same_settings(f"{self.path} was begun with {what}", old, new, advice)

    def append(self, architecture: Architecture, measurement: Measurement) -> None:
        """Add one measurement to the file."""
        latency_ms = measurement.corrected_ms(self.reference_ms)
        scale = latency_ms / measurement.raw_ms
        record = {
            "index": len(self.records),
            "time": time.time(),
            "key": architecture.key,
            "genes": architecture.to_dict(),
            "latency_ms": latency_ms,
            **{f"{name}_ms": value * scale for name, value in measurement.parts_ms.items()},
            "raw_ms": measurement.raw_ms,
            "std_ms": measurement.std_ms,
            "mad_ms": measurement.mad_ms,
            "reference_ms": measurement.reference_ms,
            **({"clock_state": measurement.clock_state} if measurement.clock_state else {}),
        }
        append_jsonl(self.path, record)
        self.records.append(record)

    def architectures(self) -> list[Architecture]:
        return [Architecture(record["genes"]) for record in self.records]

    def told_clock_states(self) -> str | None:
        """One sentence where the measurements were made in different states of the device's clocks."""
        return told_states(self.clock_states())

    def clock_states(self) -> list[dict[str, Any]]:
        """The states that were read, of each measurement one."""
        return [state for record in self.records if isinstance(state := record.get("clock_state"), dict)]

    def data(self) -> LatencyData:
        """For fitting: latencies in the machine's median state over the whole collection. Of an architecture that the
        file holds several times, as one joined from others may, the first measurement alone counts: what was learned
        must not be judged by it.

        Raises:
            DataError: there is no record. ArchitectureError: one lies outside the file's space.
        """
        if not self.records:
            raise DataError(f"{self.path} holds no measurement yet; 'nas-ext latency collect' adds them")
        rows = self.space.rows(self.architectures())
        first = np.sort(np.unique(rows, axis=0, return_index=True)[1])
        if repeated := len(rows) - len(first):
            _log.warning(
                "%s: %d of %d measurements are of architectures that it holds before; they are left out",
                self.path,
                repeated,
                len(rows),
            )
        records = [self.records[index] for index in first]
        state_ms = float(np.median([record["reference_ms"] for record in records]))
        latency = np.array([record["latency_ms"] for record in records]) * (state_ms / self.reference_ms)
        info = {"machine": self.machine, "settings": self.settings, "reference_ms": state_ms}
        order = np.arange(len(latency), dtype=np.float64)
        return LatencyData(self.space, "rows", rows[first], latency, order, True, info)

    def _header(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "version": VERSION,
            "space": space_to_dict(self.space),
            "settings": self.settings,
            "machine": self.machine,
            "reference_ms": self.reference_ms,
        }

    def _check(self, record: Mapping[str, Any], number: int) -> None:
        for name in ("latency_ms", "reference_ms"):
            value = record.get(name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < float("inf"):
                raise DataError(
                    f"{self.path}, line {number}: {name} is {value!r}, expected milliseconds; remove the line"
                )
        if not isinstance(record.get("genes"), dict):
            raise DataError(f"{self.path}, line {number} has no genes; remove the line")
