"""The tables of ``docs/compatibility.md``, from what was noted."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tools.compatibility.matrix import EXTRAS, PLATFORMS, PYTHONS

__all__ = ["PAGE", "RESULTS", "page"]

RESULTS = Path(__file__).with_name("results.json")
PAGE = Path(__file__).resolve().parents[2] / "docs" / "compatibility.md"


def page(text: str, noted: Mapping[str, Any]) -> str:
    """The page with its tables anew: each stands between ``<!-- made: NAME -->`` and ``<!-- /made -->``."""
    tables = {"tried": _tried, "versions": _versions, "resolved": _resolved}

    def made(found: re.Match[str]) -> str:
        return f"<!-- made: {found[1]} -->\n{tables[found[1]](noted)}\n<!-- /made -->"

    return re.sub(r"<!-- made: (\w+) -->\n.*?<!-- /made -->", made, text, flags=re.DOTALL)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _tried(noted: Mapping[str, Any]) -> str:
    """A row for each extra, a column for each Python with the newest and the lowest versions."""
    tried = noted.get("tried", [])
    columns = [
        (python, versions)
        for python in PYTHONS
        for versions in ("newest", "lowest")
        if any((one["python"], one["versions"]) == (python, versions) for one in tried)
    ]
    rows = []
    for extra in EXTRAS:
        cells = [
            _cell([one for one in tried if (one["extra"], one["python"], one["versions"]) == (extra, *column)])
            for column in columns
        ]
        rows.append([f"`{extra}`" if extra != EXTRAS[0] else "none", *cells])
    head = ["extra", *(f"{noted['interpreters'][python]}, {versions}" for python, versions in columns)]
    missing = [python for python, found in noted["interpreters"].items() if found is None]
    untried = f"\n\nNo interpreter of Python {', '.join(missing)} was at hand: untried." if missing else ""
    seen = {one["python"] for one in tried}
    waiting = [python for python, found in noted["interpreters"].items() if found and python not in seen]
    if waiting:
        untried += f"\n\nPython {', '.join(waiting)} is untried so far."
    return _table(head, rows) + untried


def _cell(tried: Sequence[Mapping[str, Any]]) -> str:
    """What came of the environments of a cell; those from wheels by uv are the ordinary ones and are not named."""
    told = []
    for one in tried:
        how = [one["source"]] * (one["source"] != "wheel") + [f"by {one['installer']}"] * (one["installer"] != "uv")
        told.append(f"{' '.join([*how, one['result']])}".replace("|", "\\|"))
    return "; ".join(told) or "untried"


def _versions(noted: Mapping[str, Any]) -> str:
    """What the lowest and the newest versions were, on the first Python."""
    found: dict[str, dict[str, str]] = {}
    for one in noted.get("tried", []):
        if one["python"] == PYTHONS[0] and one["result"] == "works":
            for name, version in one["packages"].items():
                found.setdefault(name, {}).setdefault(one["versions"], version)
    rows = [
        [name, found[name].get("lowest", "untried"), found[name].get("newest", "untried")] for name in sorted(found)
    ]
    return _table(["package", "lowest tried", "newest tried"], rows)


def _resolved(noted: Mapping[str, Any]) -> str:
    """A row for each system, a column for each Python: which extras have wheels of all they need."""
    rows = []
    for system in PLATFORMS:
        cells = []
        for python in PYTHONS:
            here = [one for one in noted.get("resolved", []) if (one["system"], one["python"]) == (system, python)]
            without = [one["extra"] for one in here if one["error"]]
            torch = next((one["torch"] for one in here if one["torch"]), None)
            if not here:
                cells.append("not asked")
            elif len(without) == len(here):
                cells.append("no wheels")
            else:
                names = ", ".join(f"`{extra}`" if extra != EXTRAS[0] else "none" for extra in without)
                cells.append(f"torch {torch}" + (f"; not {names}" if without else ""))
        rows.append([system, *cells])
    return _table(["system", *(f"Python {python}" for python in PYTHONS)], rows)
