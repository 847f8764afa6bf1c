"""What ``make bench`` found on each machine whose file is there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.__main__ import modules
from benchmarks.page.results import Results
from benchmarks.page.section import wrapped
from benchmarks.page.words import count, fixed, joined, significant, table

__all__ = ["ANCHOR", "TITLE", "on_machines"]

TITLE = "On your machine"
ANCHOR = "on-your-machine"
SEEN = (
    "Each benchmark that has a small size, once; the size stands beside its name: a figure holds for that size, and is"
    " noisier than those above. To add your machine, run `make bench` and `python -m benchmarks.page`, and commit the"
    " file of `benchmarks/results/machines` with the page."
)
NOT_SEEN = (
    "No machine is here yet. `make bench` runs each benchmark that has a small size once, and writes one file into"
    " `benchmarks/results/machines`, of which `python -m benchmarks.page` makes a table here."
)
QUIET = 0.3
"""Cores that others may keep busy without a word about it."""


def on_machines(results: Results) -> str:
    """The section as Markdown: the headline figures of each machine as a table, then what has none."""
    found = results.of_machines()
    parts = [f"## {TITLE}", wrapped(SEEN if found else NOT_SEEN)]
    for name, content in found.items():
        benchmarks = {each: entry for each, entry in content["benchmarks"].items() if each in modules()}
        told = [
            f"### {name}",
            _figures(benchmarks),
            _without(benchmarks),
            f"> {_provenance(name, content, benchmarks)}",
        ]
        parts += [each for each in told if each]
    return "\n\n".join(parts)


def _figures(benchmarks: Mapping[str, Any]) -> str:
    rows = []
    for name, entry in benchmarks.items():
        for place, figure in enumerate(entry.get("figures", ())):
            size = f"`{entry['size']}`" if entry["size"] else ""
            about = ["", ""] if place else [f"`{name}`", size]
            rows.append([*about, figure["what"], _value(figure["value"], figure["unit"])])
    return table(["benchmark", "size", "figure", "value"], rows, left=3) if rows else ""


def _value(value: float | bool, unit: str) -> str:
    if isinstance(value, bool):
        return "yes" if value else "NO"
    return f"{significant(value)} {unit}".strip()


def _without(benchmarks: Mapping[str, Any]) -> str:
    """A line for each reason why benchmarks have no figures."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for name, entry in benchmarks.items():
        if "reason" in entry:
            reasons.setdefault((entry["status"], entry["reason"]), []).append(f"`{name}`")
    return wrapped("\n".join(f"- {joined(names)}: {how}, {why}" for (how, why), names in sorted(reasons.items())))


def _provenance(name: str, content: Mapping[str, Any], benchmarks: Mapping[str, Any]) -> str:
    machine, entries = content["machine"], benchmarks.values()
    ran = [entry for entry in entries if "seconds" in entry]
    dates = sorted({entry["date"] for entry in ran or entries})
    minutes = sum(entry["seconds"] + entry.get("prepared_s", 0) for entry in ran) / 60
    busiest = max((entry.get("others_cores", 0) for entry in ran), default=0)
    told = [
        f"Measured with `{content['measured']['command']}`, {' to '.join(dict.fromkeys([*dates[:1], *dates[-1:]]))}",
        f"on {machine['cpu']}, {count(machine['cores'])} cores",
        _software(benchmarks),
        f"in {fixed(minutes)} minutes",
    ]
    if busiest > QUIET:
        told.append(f"while other programs kept up to {fixed(busiest)} cores busy, so that times are too long")
    return f"{', '.join(each for each in told if each)}; figures in `benchmarks/results/machines/{name}.json`."


def _software(benchmarks: Mapping[str, Any]) -> str:
    """What the benchmarks that ran were measured with: where it is not the same for all, which with which."""
    found: dict[str, list[str]] = {}
    for name, entry in benchmarks.items():
        if "seconds" in entry:
            found.setdefault(entry["software"], []).append(f"`{name}`")
    if len(found) < 2:
        return "".join(f"with {software}" for software in found)
    return ", ".join(f"{joined(names)} with {software}" for software, names in sorted(found.items()))
