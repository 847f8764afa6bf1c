"""Tables of published latencies: one network of a name, an image size and a batch in each row."""

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
from nas_core.files import read_bytes

_NEEDED = {
    "model": ("model",),
    "img_size": ("img_size", "infer_img_size"),
    "batch_size": ("batch_size", "infer_batch_size"),
    "step_ms": ("step_ms", "infer_step_time"),
}
"""Columns that a table must have, under one of these names; the last are of timm's ``benchmark-infer-*.csv``."""
_FURTHER = {
    "params_m": ("param_count_m", "param_count", "infer_param_count"),
    "gmacs": ("gmacs", "infer_gmacs"),
    "macts": ("macts", "infer_macts"),
}
"""Columns that it may have, also with empty cells."""
_MODEL = re.compile(r"\w[\w.+-]*")
_GZIP = b"\x1f\x8b"
_MOST = 2**26
"""Bytes of a table, packed and unpacked."""


@dataclass(frozen=True)
class PublishedNetwork:
    """A row of a table: a network and what one pass takes."""

    model: str
    img_size: int
    """Height and width of the images."""
    batch_size: int
    step_ms: float
    """Milliseconds of a whole batch."""
    params_m: float | None = None
    """Millions of parameters, as published."""
    gmacs: float | None = None
    """Billions of multiplications and additions for one image, as published."""
    macts: float | None = None
    """Millions of activations of convolutions and linear layers for one image, as published."""

    @property
    def name(self) -> str:
        """What tells it from all others of a device."""
        return f"{self.model}-{self.img_size}-b{self.batch_size}"

    @property
    def settings(self) -> dict[str, Any]:
        """What decides which network it is, as plain data."""
        return {"model": self.model, "img_size": self.img_size, "batch_size": self.batch_size}

    @property
    def costs(self) -> dict[str, float]:
        """What was published of its costs."""
        given = {"params_m": self.params_m, "gmacs": self.gmacs, "macts": self.macts}
        return {name: value for name, value in given.items() if value is not None}


@dataclass(frozen=True)
class PublishedTable:
    """What was published of each device."""

    path: Path
    devices: Mapping[str, Sequence[PublishedNetwork]]
    """Networks by the device's name, in the order of the file."""

    def chosen(self, device: str | None) -> tuple[str, Sequence[PublishedNetwork]]:
        """The name and the networks of a device; None: the only one there is.

        Raises:
            UnknownChoiceError: there is no such device. ConfigError: none is named, and there are several.
        """
        if device is None and len(self.devices) > 1:
            raise ConfigError(f"{self.path} has measurements of {', '.join(self.devices)}; give one with --device")
        name = next(iter(self.devices)) if device is None else device
        if name not in self.devices:
            raise unknown_choice(f"device of {self.path}", name, self.devices)
        return name, self.devices[name]

    def fingerprint(self, device: str) -> str:
        """A short name of all that is published of a device."""
        rows = [asdict(network) for network in self.devices[device]]
        return hashlib.sha256(json.dumps(rows, sort_keys=True).encode()).hexdigest()[:12]


def read_published(path: str | Path, device: str | None = None) -> PublishedTable:
    """Read a CSV file, plain or compressed with gzip, with a column ``device`` or, as timm publishes it, of one device.

    Args:
        device: what the device of a file without such a column is called; None: after the file.

    Raises:
        DataError: the file is missing, empty or no table, lacks a column, or a cell is no number above 0; a network
        stands in it twice. NasExtError: it cannot be read.
    """
    reader = csv.DictReader(io.StringIO(_text(Path(path)), newline=""))
    columns = _columns(path, reader.fieldnames or [])
    only = device or Path(path).name.partition(".")[0].removeprefix("benchmark-infer-")
    found: dict[str, dict[str, PublishedNetwork]] = {}
    try:
        for cells in reader:
            where = f"{path}, line {reader.line_num}"
            network = _network(cells, columns, where)
            name = (cells["device"] or "").strip() if "device" in cells else only
            if not name:
                raise DataError(f"{where}: no device; name it, or remove the line")
            if network.name in found.setdefault(name, {}):
                raise DataError(
                    f"{where}: {network.model} at {network.img_size} pixels and batch {network.batch_size} stands there"
                    f" a second time for {name}; remove one of the lines"
                )
            found[name][network.name] = network
    except csv.Error as error:
        raise DataError(f"{path}, line {reader.line_num} is no line of a CSV file ({error})") from None
    if not found:
        raise DataError(f"{path} has no measurement below its header; expected one network in each line")
    return PublishedTable(Path(path), {name: tuple(rows.values()) for name, rows in found.items()})


def _text(path: Path) -> str:
    try:
        content = read_bytes(path, _MOST)
        content = _unpacked(content) if content.startswith(_GZIP) else content
        text = content.decode("utf-8-sig")
    except (EOFError, zlib.error, gzip.BadGzipFile, UnicodeDecodeError) as error:
        raise DataError(f"{path} is no CSV file, plain or compressed with gzip ({error})") from None
    if not text.strip():
        raise DataError(f"{path} is empty; expected the columns {', '.join(_NEEDED)} and one network in each line")
    return text


def _unpacked(content: bytes) -> bytes:
    with gzip.GzipFile(fileobj=io.BytesIO(content)) as file:
        text = file.read(_MOST + 1)
    if len(text) > _MOST:
        raise gzip.BadGzipFile(f"it unpacks to more than {_MOST} bytes")
    return text


def _columns(path: str | Path, header: Sequence[str]) -> dict[str, str]:
    """The name that each column has in this file."""
    wanted = {**_NEEDED, **_FURTHER}
    found = {
        name: next(one for one in names if one in header)
        for name, names in wanted.items()
        if any(one in header for one in names)
    }
    if absent := [" or ".join(names) for name, names in _NEEDED.items() if name not in found]:
        raise DataError(f"{path} has no column {absent[0]}; it has {', '.join(map(str, header))[:300]}")
    return found


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
