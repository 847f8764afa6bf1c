"""The tables of ``docs/compatibility.md``, from what was noted."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from packaging.version import Version

from tools.compatibility.matrix import CORE, EXTRAS, PLATFORMS, PYTHONS, requirements
from tools.compatibility.trying import WORKS

__all__ = ["PAGE", "RESULTS", "page"]

RESULTS = Path(__file__).with_name("results.json")
PAGE = Path(__file__).resolve().parents[2] / "docs" / "compatibility.md"


def page(text: str, noted: Mapping[str, Any], settings: dict[str, object]) -> str:
    """The page with its tables anew: each stands between ``<!-- made: NAME -->`` and ``<!-- /made -->``.

    Entries of other requirements than those of ``settings``, the table ``project`` of ``pyproject.toml``, say so.
    """
    tried = [
        {**one, "outdated": one["asked"] != requirements(settings, one["extra"])} for one in noted.get("tried", [])
    ]
    tables = {
        "tried": _tried(tried),
        "where": _where(tried),
        "versions": _versions(tried),
        "resolved": _resolved(noted.get("resolved", {})),
    }

    def made(found: re.Match[str]) -> str:
        return f"<!-- made: {found[1]} -->\n{tables[found[1]]}\n<!-- /made -->"

    return re.sub(r"<!-- made: (\w+) -->\n.*?<!-- /made -->", made, text, flags=re.DOTALL)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _name(extra: str, without: str = "none") -> str:
    return without if extra == CORE else f"`{extra}`"


def _tried(tried: Sequence[Mapping[str, Any]]) -> str:
    """A row for each extra, a column for each system and Python with the newest and the lowest versions."""
    columns = [
        (system, python, versions)
        for system in sorted({one["system"] for one in tried})
        for python in PYTHONS
        for versions in ("newest", "lowest")
        if any(_column(one) == (system, python, versions) for one in tried)
    ]
    rows = [
        [
            _name(extra),
            *(_cell([one for one in tried if (one["extra"], _column(one)) == (extra, column)]) for column in columns),
        ]
        for extra in EXTRAS
    ]
    head = ["extra", *(f"{system}, Python {python}, {versions}" for system, python, versions in columns)]
    missing = [python for python in PYTHONS if python not in {one["python"] for one in tried}]
    return _table(head, rows) + (f"\n\nUntried so far: Python {', '.join(missing)}." if missing else "")


def _column(one: Mapping[str, Any]) -> tuple[str, str, str]:
    return one["system"], one["python"], one["versions"]


def _cell(tried: Sequence[Mapping[str, Any]]) -> str:
    """What came of the environments of a cell; those from wheels by uv are the ordinary ones and are not named."""
    told = []
    for one in tried:
        how = [one["source"]] * (one["source"] != "wheel") + [f"by {one['installer']}"] * (one["installer"] != "uv")
        why = f" ({one['why']})" if "why" in one else ""
        of_then = ", with the requirements of then" if one["outdated"] else ""
        told.append(f"{' '.join([*how, one['result']])}{why}{of_then}".replace("|", "\\|"))
    return "; ".join(told) or "untried"


def _where(tried: Sequence[Mapping[str, Any]]) -> str:
    """A row for each interpreter and version of nas-ext that entries are of."""
    found: dict[tuple[str, ...], list[Mapping[str, Any]]] = {}
    for one in tried:
        found.setdefault((one["system"], one["interpreter"], one["nas_ext"]), []).append(one)
    rows = []
    for about, entries in found.items():
        days = sorted({one["date"] for one in entries})
        kinds = {
            versions: ", ".join(_name(each, "no extra") for each in EXTRAS if (each, versions) in _kinds(entries))
            for versions in ("newest", "lowest")
        }
        told = "; ".join(f"{versions}: {names}" for versions, names in kinds.items() if names)
        rows.append([*about, " to ".join(dict.fromkeys([days[0], days[-1]])), told])
    return _table(["system", "Python", "nas-ext", "tried on", "extras"], rows)


def _kinds(entries: Sequence[Mapping[str, Any]]) -> set[tuple[str, str]]:
    return {(one["extra"], one["versions"]) for one in entries}


def _versions(tried: Sequence[Mapping[str, Any]]) -> str:
    """What the lowest and the newest versions were that worked, on the first Python; without the parts of builds."""
    found: dict[str, dict[str, list[Version]]] = {}
    for one in tried:
        if one["python"] == PYTHONS[0] and one["result"] == WORKS:
            for name, version in one["packages"].items():
                found.setdefault(name, {}).setdefault(one["versions"], []).append(Version(version))
    rows = []
    for name in sorted(found):
        lowest, newest = (found[name].get(versions) for versions in ("lowest", "newest"))
        rows.append([name, min(lowest).public if lowest else "untried", max(newest).public if newest else "untried"])
    return _table(["package", "lowest tried", "newest tried"], rows)


def _resolved(resolved: Mapping[str, Any]) -> str:
    """A row for each system, a column for each Python: which extras have wheels of all they need."""
    rows = []
    for system in PLATFORMS:
        cells = []
        for python in PYTHONS:
            here = [one for one in resolved.get("rows", []) if (one["system"], one["python"]) == (system, python)]
            without = [one["extra"] for one in here if one["error"]]
            torch = next((one["torch"] for one in here if one["torch"]), None)
            if not here:
                cells.append("not asked")
            elif len(without) == len(here):
                cells.append("no wheels")
            else:
                names = ", ".join(map(_name, without))
                cells.append(f"torch {Version(torch).public}" + (f"; not {names}" if without else ""))
        rows.append([system, *cells])
    asked = f"\n\nAsked on {resolved['date']}." if resolved else ""
    return _table(["system", *(f"Python {python}" for python in PYTHONS)], rows) + asked
