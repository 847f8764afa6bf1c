"""What ``search.log`` tells of a search that runs: how many evaluations it may take, and since when."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from nas_core.errors import NasExtError
from nas_core.files import read_bytes

_BEGAN = re.compile(r"at most ([\d,]+) evaluations to come(?:, (\d+) results were known)?$")
_STATE = re.compile(r": (\d+) of at most ([\d,]+) known, (\d+) of them evaluated now")


@dataclass(frozen=True)
class Logged:
    """The last run of a search, as its log tells it."""

    began: datetime
    """When the first evaluation of this run began."""
    before: int
    """Results that were known then."""
    total: int
    """Results at most, those included."""
    told: int
    """Results known at the last line that tells it, at most a minute before the next."""


def read_log(path: Path) -> Logged | None:
    """The last run that the log tells of; None without one, or where the file is missing or not readable."""
    try:
        lines = read_bytes(path).decode("utf-8").splitlines()
    except (NasExtError, UnicodeDecodeError):
        return None
    found: Logged | None = None
    for line in lines:
        day, _, rest = line.partition(" ")
        hour, _, text = rest.partition(" ")
        if began := _BEGAN.match(text):
            known = int(began[2] or 0)
            try:
                when = datetime.fromisoformat(f"{day} {hour}")
            except ValueError:
                continue
            if when.tzinfo is not None:
                found = Logged(when, known, known + _count(began[1]), known)
        elif found is not None and (state := _STATE.search(text)):
            found = replace(found, told=int(state[1]), total=_count(state[2]))
    return found


def _count(text: str) -> int:
    return int(text.replace(",", ""))
