"""Files and JSON from anybody: refused in one line where they are no file, too large, too deep or no text."""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from pathlib import Path
from typing import Any

from nas_core.errors import DataError, NasExtError

MOST_BYTES = 2**30
"""How large a file may be that is read whole; JSON takes many times its size once it is read."""
DIGITS = 308
"""How many digits a whole number may have: longer ones are no floating-point numbers, and take endless time."""

_LONG_NUMBER = re.compile(rb"[0-9]{%d}" % (DIGITS + 1))
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


def check_regular(path: str | Path) -> Path:
    """The path, if it is not one that a reader would wait at or never finish.

    Raises:
        DataError: it is missing, a pipe, a socket or a device. NasExtError: it cannot be reached, or is a folder.
    """
    try:
        mode = Path(path).stat().st_mode
    except (FileNotFoundError, ValueError) as error:  # a name with a zero byte
        raise DataError(f"file not found: {path}; check the name and the folder it is taken from") from error
    except OSError as error:
        raise NasExtError(f"cannot read {path}: {error.strerror or error}; check the path and its rights") from error
    if stat.S_ISDIR(mode):
        raise NasExtError(f"cannot read {path}: Is a directory; check the path and its rights")
    if not stat.S_ISREG(mode):
        raise DataError(f"{path} is a pipe, a socket or a device; write what it gives to a file, and give that")
    return Path(path)


def real_path(path: str | Path) -> Path:
    """Return the absolute path with all links followed. `Path.resolve` raises where links form a loop; here the loop
    stays in the path, and whoever opens it gets an error of one line."""
    return Path(os.path.realpath(path))


def file_digest(path: str | Path) -> str:
    """Return the SHA-256 of a file's content.

    Raises:
        DataError: see `check_regular`. NasExtError: it cannot be read.
    """
    try:
        with check_regular(path).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise NasExtError(f"cannot read {path}: {error.strerror or error}; check the path and its rights") from error


def read_bytes(path: str | Path, most: int = MOST_BYTES) -> bytes:
    """The content of a file.

    Args:
        most: bytes that it may have.

    Raises:
        DataError: see `check_regular`; also if it is larger. NasExtError: it cannot be read.
    """
    try:
        with check_regular(path).open("rb") as file:
            content = file.read(most + 1)
    except FileNotFoundError as error:
        raise DataError(f"file not found: {path}; check the name and the folder it is taken from") from error
    except OSError as error:
        raise NasExtError(f"cannot read {path}: {error.strerror or error}; check the path and its rights") from error
    if len(content) > most:
        raise DataError(f"{path} has more than {most / 2**20:g} MB, which is too much for such a file; check its name")
    return content


def parse_json(text: bytes | str) -> Any:
    """The value of a JSON text.

    Raises:
        ValueError: it is none, nested too deep, or holds a number of more than 308 digits or half a character.
    """
    content = text.encode("utf-8") if isinstance(text, str) else text
    try:
        value = json.loads(content.decode("utf-8"), parse_int=_whole if _LONG_NUMBER.search(content) else None)
        if _SURROGATE.search(content):
            json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError("a text with half a character, a lone surrogate") from None
    except RecursionError:
        raise ValueError("nested too deep") from None
    return value


def read_json(path: str | Path) -> Any:
    """The value in a JSON file.

    Raises:
        DataError: the file is missing or is not JSON that `parse_json` takes.
        NasExtError: it cannot be read.
    """
    content = read_bytes(path)
    try:
        return parse_json(content)
    except ValueError as error:
        raise DataError(f"{path} is not JSON ({error}): give a JSON file, or make it anew if it is damaged") from error


def _whole(digits: str) -> int:
    if len(digits) > DIGITS:
        raise ValueError(f"a number of {len(digits)} digits, which is too large")
    return int(digits)
