"""Readers of JSON and YAML files with a size limit and one-line errors.

They raise a DataError if the file is missing, malformed or not a regular file, and a NasExtError if it cannot be read.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from pathlib import Path
from typing import Any

import yaml

from nas_core.errors import DataError, NasExtError

MAX_BYTES = 2**30  # maximum size in bytes of a file that is read into memory
MAX_TEXT = 2**24  # maximum size of a YAML text in bytes


def check_regular(path: str | Path) -> Path:
    """Return a path after checking that it is a regular file; raise a DataError otherwise."""
    try:
        mode = Path(path).stat().st_mode
    except (FileNotFoundError, ValueError) as error:  # a name with a zero byte
        raise DataError(f"file not found: {path}; check the name and the folder") from error
    except OSError as error:
        raise _unreadable(path, error) from error
    if not stat.S_ISREG(mode):
        raise DataError(f"{path} is a folder, a pipe, a socket or a device; give the name of a file")
    return Path(path)


def _unreadable(path: str | Path, error: OSError) -> NasExtError:
    return NasExtError(f"cannot read {path}: {error.strerror or error}; check the path and its permissions")


def real_path(path: str | Path) -> Path:
    """Return the absolute path with symbolic links resolved. Unlike `Path.resolve`, accept loops of links."""
    return Path(os.path.realpath(path))


def file_digest(path: str | Path) -> str:
    """Return the SHA-256 of a file, or of the names and contents of the files in a folder, in hexadecimal."""
    try:
        if Path(path).is_dir():
            files = sorted(file for file in Path(path).iterdir() if file.is_file())
            digests = "".join(f"{file_digest(file)} {file.name}\n" for file in files)
            return hashlib.sha256(digests.encode()).hexdigest()
        with check_regular(path).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise _unreadable(path, error) from error


def read_bytes(path: str | Path, max_bytes: int = MAX_BYTES) -> bytes:
    """Return the content of a file of at most ``max_bytes`` bytes."""
    try:
        with check_regular(path).open("rb") as file:
            # A read of max_bytes + 1 bytes would allocate them all, even for a small file.
            too_large = os.fstat(file.fileno()).st_size > max_bytes
            content = b"" if too_large else file.read()
    except OSError as error:
        raise _unreadable(path, error) from error
    if too_large:
        raise DataError(
            f"{path} is larger than {max_bytes / 2**20:g} MB, the maximum for this type of file; check its name"
        )
    return content


def parse_json(text: bytes | str) -> Any:
    """Return the value of a JSON text.

    Raises:
        ValueError: the text is not JSON, or is nested too deeply.
    """
    try:
        return json.loads(text.decode("utf-8") if isinstance(text, bytes) else text)
    except RecursionError:
        raise ValueError("lists or mappings are nested too deeply for Python's parser") from None


def read_json(path: str | Path) -> Any:
    content = read_bytes(path)
    try:
        return parse_json(content)
    except ValueError as error:
        raise DataError(
            f"{path} is not JSON ({error}): give a JSON file, or create it again if it is damaged"
        ) from error


def parse_yaml(text: bytes | str) -> Any:
    """Return the plain value of a YAML text of at most :data:`MAX_TEXT` bytes.

    Raises:
        ValueError: the text is too large, not YAML, nested too deeply, or has tags of Python objects.
    """
    content = text.encode("utf-8") if isinstance(text, str) else text
    if len(content) > MAX_TEXT:
        raise ValueError(f"larger than {MAX_TEXT // 1000} kB")
    try:
        return yaml.safe_load(content.decode("utf-8"))
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except (yaml.YAMLError, ValueError, TypeError, AttributeError) as error:
        raise ValueError(" ".join(str(error).split())) from None


def read_yaml(path: str | Path) -> Any:
    content = read_bytes(path)
    try:
        return parse_yaml(content)
    except ValueError as error:
        raise DataError(f"{path} is not valid YAML ({error}); correct the file") from error
