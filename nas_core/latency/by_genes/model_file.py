"""Files of latency models by genes: JSON, or NPZ with the JSON as one of its arrays; nothing in them is executed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nas_core.errors import DataError
from nas_core.files import DAMAGED_ARCHIVE, open_npz, parse_json, read_json, write_atomic, write_json

FORMAT = "nas-ext/latency-model"
VERSION = 1
_MOST = 2**28
"""Bytes of all weights, unpacked."""


def write_model_file(path: str | Path, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write JSON, or NPZ when the name ends in .npz (smaller; of use where there are many weights)."""
    whole = {"format": FORMAT, "version": VERSION, **header}
    if str(path).endswith(".npz"):
        buffer = BytesIO()
        np.savez_compressed(buffer, header=np.array(json.dumps(whole)), **arrays)  # type: ignore[arg-type]
        write_atomic(path, buffer.getvalue())
    else:
        write_json(path, {**whole, "arrays": dict(arrays)})


def read_model_file(path: str | Path) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Header and arrays of such a file.

    Raises:
        DataError: it is missing, no latency model, damaged, or of a newer version.
    """
    header, arrays = _read(path)
    if not isinstance(header, dict):
        raise DataError(f"{path} is no latency model; 'nas-ext latency fit' makes one")
    if header.get("format") != FORMAT:
        raise DataError(
            f"{path} is no latency model (format {header.get('format')!r}); 'nas-ext latency fit' makes one"
        )
    if not isinstance(header.get("version"), int) or header["version"] > VERSION:
        raise DataError(
            f"{path} has version {header.get('version')!r}, this release reads up to {VERSION}; upgrade nas-ext"
        )
    return header, arrays


def _read(path: str | Path) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    if not str(path).endswith(".npz"):
        content = read_json(path)
        if not isinstance(content, dict):
            raise DataError(f"{path} is no latency model; 'nas-ext latency fit' makes one")
        arrays = content.pop("arrays", {})
        if not isinstance(arrays, dict):
            raise DataError(f"{path}: latency model is damaged (no arrays); fit it anew")
        try:
            return content, {name: np.asarray(values) for name, values in arrays.items()}
        except ValueError as error:
            raise DataError(f"{path}: latency model is damaged ({error}); fit it anew") from None
    try:
        with open_npz(path, _MOST) as file:
            arrays = {name: file[name] for name in file.files}
        header = parse_json(str(arrays.pop("header")))
    except DAMAGED_ARCHIVE as error:
        raise DataError(f"{path} is no latency model or is damaged ({error}); fit it anew") from None
    return header, arrays
