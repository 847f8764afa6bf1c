"""Tables of published latencies."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
import math
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from nas_core.errors import ConfigError, DataError, unknown_choice
from nas_core.files.reading import read_bytes

_NEEDED = {
    "model": ("model",),
    "img_size": ("img_size", "infer_img_size"),
    "batch_size": ("batch_size", "infer_batch_size"),
    "step_ms": ("step_ms", "infer_step_time"),
}
"""Required columns, each with accepted names, including those of timm's ``benchmark-infer-*.csv``."""
_FURTHER = {
    "params_m": ("param_count_m", "param_count", "infer_param_count"),
    "gmacs": ("gmacs", "infer_gmacs"),
    "macts": ("macts", "infer_macts"),
}
_MODEL = re.compile(r"\w[\w.+-]*")
_GZIP = b"\x1f\x8b"
_MAX_BYTES = 2**26


@dataclass(frozen=True)
class PublishedNetwork:
    """Network of a table and the time of one pass."""

    model: str
    img_size: int
    batch_size: int
    step_ms: float
    """Milliseconds of a whole batch."""
    params_m: float | None = None
    gmacs: float | None = None
    """Billion multiply-adds for one image."""
    macts: float | None = None
    """Million activations of convolutions and linear layers for one image."""

    @property
    def name(self) -> str:
        """Return a name that is unique for a device."""
        return f"{self.model}-{self.img_size}-b{self.batch_size}"

    @property
    def settings(self) -> dict[str, Any]:
        return {"model": self.model, "img_size": self.img_size, "batch_size": self.batch_size}

    @property
    def costs(self) -> dict[str, float]:
        costs = {"params_m": self.params_m, "gmacs": self.gmacs, "macts": self.macts}
        return {name: value for name, value in costs.items() if value is not None}


@dataclass(frozen=True)
class PublishedTable:
    """Published networks of several devices."""

    path: Path
    devices: Mapping[str, Sequence[PublishedNetwork]]
    """Networks by device, in the order of the file."""

    def chosen(self, device: str | None) -> tuple[str, Sequence[PublishedNetwork]]:
        """Return the name and the networks of a device; None: the only one."""
        if device is None and len(self.devices) > 1:
            raise ConfigError(f"{self.path} has measurements of {', '.join(self.devices)}; give one with --device")
        name = next(iter(self.devices)) if device is None else device
        if name not in self.devices:
            raise unknown_choice(f"device of {self.path}", name, self.devices)
        return name, self.devices[name]

    def fingerprint(self, device: str) -> str:
        rows = [asdict(network) for network in self.devices[device]]
        return hashlib.sha256(json.dumps(rows, sort_keys=True).encode()).hexdigest()[:12]


def read_published(path: str | Path, device: str | None = None) -> PublishedTable:
    """Read a CSV file, plain or gzipped, with a column ``device`` or, in timm's format, of one device.

    Args:
        device: name of the device of a file without that column; default: the file's name.

    Raises:
        DataError: a column is missing, a cell is no number above 0, or a network is repeated.
    """
    reader = csv.DictReader(io.StringIO(_text(Path(path)), newline=""))
    columns = _columns(path, reader.fieldnames or [])
    only = device or Path(path).name.partition(".")[0].removeprefix("benchmark-infer-")
    devices: dict[str, dict[str, PublishedNetwork]] = {}
    try:
        for cells in reader:
            where = f"{path}, line {reader.line_num}"
            network = _network(cells, columns, where)
            name = (cells["device"] or "").strip() if "device" in cells else only
            if not name:
                raise DataError(f"{where}: no device; name it, or remove the line")
            if network.name in devices.setdefault(name, {}):
                raise DataError(
                    f"{where}: {network.model} at {network.img_size} pixels and batch {network.batch_size} is there a"
                    f" second time for {name}; remove one of the lines"
                )
            devices[name][network.name] = network
    except csv.Error as error:
        raise DataError(f"{path}, line {reader.line_num} is no line of a CSV file ({error})") from None
    if not devices:
        raise DataError(f"{path} has no measurement below its header; expected one network in each line")
    return PublishedTable(Path(path), {name: tuple(rows.values()) for name, rows in devices.items()})


def _text(path: Path) -> str:
    try:
        content = read_bytes(path, _MAX_BYTES)
        if content.startswith(_GZIP):
            with gzip.GzipFile(fileobj=io.BytesIO(content)) as file:
                content = file.read(_MAX_BYTES)
        return content.decode("utf-8-sig")
    except (EOFError, zlib.error, gzip.BadGzipFile, UnicodeDecodeError) as error:
        raise DataError(f"{path} is no CSV file, plain or compressed with gzip ({error})") from None


def _columns(path: str | Path, header: Sequence[str]) -> dict[str, str]:
    columns = {}
    for name, names in {**_NEEDED, **_FURTHER}.items():
        present = [column for column in names if column in header]
        if present:
            columns[name] = present[0]
        elif name in _NEEDED:
            has = f"it has {', '.join(map(str, header))[:300]}" if header else "it is empty"
            raise DataError(f"{path} has no column {' or '.join(names)}; {has}")
    return columns


def _network(cells: Mapping[str, str | None], columns: Mapping[str, str], where: str) -> PublishedNetwork:
    def number(name: str) -> float:
        text = (cells[columns[name]] or "").strip()
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not 0 < value < math.inf:
            raise DataError(f"{where}: {columns[name]} is {text!r}, expected a number above 0; mend or remove the line")
        return value

    def whole(name: str) -> int:
        value = number(name)
        if value != int(value):
            raise DataError(f"{where}: {columns[name]} is {value:g}, expected a whole number; mend or remove the line")
        return int(value)

    model = (cells[columns["model"]] or "").strip()
    if not _MODEL.fullmatch(model):
        raise DataError(f"{where}: {model[:80]!r} is no name of a model; mend or remove the line")
    further = {name: number(name) for name in _FURTHER if name in columns and (cells[columns[name]] or "").strip()}
    return PublishedNetwork(model, whole("img_size"), whole("batch_size"), number("step_ms"), **further)
