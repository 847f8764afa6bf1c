"""The folder of a data set: a journal with one row for each network, and the networks as ONNX files without weights."""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nas_core.differences import check_same_settings
from nas_core.errors import ConfigError, DataError
from nas_core.files import append_jsonl, make_folder, read_jsonl, write_atomic
from nas_core.latency.by_graph.dataset.plan import PlannedNetwork
from nas_core.latency.clock_state import told_states
from nas_core.latency.timing import checked_settings

JOURNAL = "dataset.jsonl"
_FORMAT, _VERSION = "nas-ext/network-latencies", 1

_log = logging.getLogger(__name__)


@dataclass
class NetworkSet:
    """A folder that grows by one network at a time, and what is in it so far.

    Rows have ``name``, ``family``, ``settings`` and ``time`` (seconds since 1970); then either ``error``, why it was
    skipped, or ``seconds`` (spent on the network), ``nodes``, ``flops_g``, ``params_m``, ``access_m``, ``unknown``
    (operators, and how many) and ``measured``: for each runtime ``corrected_ms`` (drift divided out, in the state of
    the header's ``reference_ms``), ``raw_ms``, ``std_ms``, ``mad_ms``, ``reference_ms`` (around it), ``relative`` (to
    the reference; also of each of the ``visits``), ``at_a_time`` (passes timed together; all times are of one) and,
    where they could be read, the ``clock_states`` of the device, of each visit one.
    """

    path: Path
    settings: dict[str, Any]
    """Everything that decides which networks are measured and how."""
    machine: dict[str, Any]
    reference_ms: dict[str, float]
    """What the reference network took in each runtime when the folder was begun."""
    rows: list[dict[str, Any]] = field(default_factory=list)

    @classmethod
    def begin(
        cls,
        path: str | Path,
        settings: Mapping[str, Any],
        machine: Mapping[str, Any],
        reference_ms: Mapping[str, float],
    ) -> NetworkSet:
        """Write the header of a new folder.

        Raises:
            NasExtError: it cannot be written.
        """
        begun = cls(Path(path), dict(settings), dict(machine), dict(reference_ms))
        make_folder(begun.path / "onnx")
        header = {"format": _FORMAT, "version": _VERSION, "settings": begun.settings, "machine": begun.machine}
        append_jsonl(begun.path / JOURNAL, {**header, "reference_ms": begun.reference_ms})
        return begun

    @classmethod
    def read(cls, path: str | Path) -> NetworkSet:
        """Read a folder; its ONNX files are not looked at. Of a network that has several rows, as one joined from other
        folders may, the first alone counts: what was learned must not be judged by it.

        Raises:
            DataError: it is missing, empty, something else than such a folder, or gives two networks one name.
        """
        journal = Path(path) / JOURNAL
        lines = read_jsonl(journal)
        if not lines:
            raise DataError(f"{journal} is empty; 'nas-ext latency dataset' fills it")
        header, rows = lines[0], lines[1:]
        if header.get("format") != _FORMAT:
            raise DataError(
                f"{journal} holds no latencies of networks (format {header.get('format')!r}, expected {_FORMAT!r})"
            )
        if not isinstance(header.get("version"), int) or header["version"] > _VERSION:
            raise DataError(
                f"{journal} has version {header.get('version')!r}, this release reads up to {_VERSION}; upgrade"
            )
        try:
            reference = {str(name): float(value) for name, value in header["reference_ms"].items()}
            settings, machine = checked_settings(header["settings"]), dict(header["machine"])
            found = cls(Path(path), settings, machine, reference, rows)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise DataError(f"{journal}: the header lacks or garbles {error}; restore it or measure anew") from None
        for number, row in enumerate(rows, start=2):
            found._check(row, number)
        found._leave_out_repeats()
        return found

    def _leave_out_repeats(self) -> None:
        """Rows of a network that an earlier one has, which is known by name, and by family and settings."""
        names: dict[str, str] = {}
        known: set[str] = set()
        kept = []
        for number, row in enumerate(self.rows, start=2):
            network = json.dumps([row["family"], row["settings"]], sort_keys=True)
            if names.setdefault(row["name"], network) != network:
                raise DataError(
                    f"{self.path / JOURNAL}, line {number}: {row['name']} is another network than before; remove the"
                    " line, or the folder it came from"
                )
            if network not in known:
                kept.append(row)
            known.add(network)
        if repeated := len(self.rows) - len(kept):
            _log.warning(
                "%s: %d of %d rows are of networks that it holds before; they are left out",
                self.path / JOURNAL,
                repeated,
                len(self.rows),
            )
        self.rows = kept

    def must_match(self, settings: Mapping[str, Any], machine: Mapping[str, Any]) -> None:
        """Raise a ConfigError that names the first difference, if networks under these settings may not be added."""
        for what, old, new in (("setting", self.settings, settings), ("machine", self.machine, machine)):
            advice = "go on with the former one, or give another folder"
            check_same_settings(f"{self.path} was begun with {what}", old, new, advice)

    def missing(self, planned: list[PlannedNetwork]) -> list[PlannedNetwork]:
        """Those of the plan that have no row yet.

        Raises:
            ConfigError: a row has other settings than the plan: the family has changed since.
        """
        done = {row["name"]: row for row in self.rows}
        for network in planned:
            if network.name in done and done[network.name]["settings"] != network.settings:
                raise ConfigError(
                    f"{self.path} has another network {network.name!r} than this release of nas-ext would measure; give"
                    " another folder"
                )
        return [network for network in planned if network.name not in done]

    def onnx_path(self, name: str) -> Path:
        """Where the network of that name is."""
        return self.path / "onnx" / f"{name}.onnx"

    def append(self, row: Mapping[str, Any], content: bytes | None = None) -> None:
        """Add one network; ``content`` is its ONNX file, which is there before the row is.

        Raises:
            NasExtError: it cannot be written.
        """
        if content is not None:
            write_atomic(self.onnx_path(row["name"]), content)
        append_jsonl(self.path / JOURNAL, row)
        self.rows.append(dict(row))

    def told_clock_states(self) -> str | None:
        """One sentence where the networks were measured in different states of the device's clocks."""
        return told_states(self.clock_states())

    def clock_states(self) -> list[dict[str, Any]]:
        """The states that were read, of each visit of a network one."""
        times = [one for row in self.rows for one in dict(row.get("measured") or {}).values()]
        return [state for one in times for state in one.get("clock_states") or () if isinstance(state, dict)]

    def measured(self, runtime: str) -> list[dict[str, Any]]:
        """Rows of networks that were not skipped.

        Raises:
            ConfigError: the networks were not measured in that runtime.
        """
        if runtime not in self.reference_ms:
            raise ConfigError(
                f"{self.path} was not measured in runtime {runtime!r}; expected {' or '.join(self.reference_ms)}"
            )
        return [row for row in self.rows if "error" not in row]

    def _check(self, row: Mapping[str, Any], number: int) -> None:
        place = f"{self.path / JOURNAL}, line {number}"
        if not all(isinstance(row.get(name), str) for name in ("name", "family")) or "settings" not in row:
            raise DataError(f"{place} lacks name, family or settings; remove the line")
        if "error" in row:
            return
        measured = row.get("measured")
        for runtime in self.reference_ms:
            times = measured.get(runtime) if isinstance(measured, dict) else None
            for name in ("corrected_ms", "relative", "reference_ms"):
                value = times.get(name) if isinstance(times, dict) else None
                if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
                    raise DataError(
                        f"{place}: {name} in {runtime} is {value!r}, expected a number above 0; remove the line"
                    )
