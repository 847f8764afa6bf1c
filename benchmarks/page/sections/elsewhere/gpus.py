"""What was found on GPUs, as it stands in the files of ``make test-cuda`` and ``make bench-cuda``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.page.results import Results
from benchmarks.page.section import wrapped
from benchmarks.page.words import count, joined, significant, table

__all__ = ["ANCHOR", "TITLE", "on_gpus"]

TITLE = "On GPUs"
ANCHOR = "on-gpus"
SEEN = (
    "What those who have a GPU measured with `make bench-cuda`, and how the tests of `make test-cuda` ended there."
    " Every figure holds for the device that is named below it."
)
NOT_SEEN = (
    "Nothing was measured on a GPU yet. `make test-cuda` and `make bench-cuda` write what this section is made of; if"
    " you have a GPU, we would like to see it."
)


def on_gpus(results: Results) -> str:
    """The section as Markdown: each file's device, command and date, and its rows as a table."""
    found = results.of_gpus()
    parts = [f"## {TITLE}", wrapped(SEEN if found else NOT_SEEN)]
    for name, content in found.items():
        parts += [f"### {name.replace('_', ' ')}", _told(content), f"> {_provenance(name, content)}"]
    return "\n\n".join(parts)


def _provenance(name: str, content: Mapping[str, Any]) -> str:
    measured, machine = content["measured"], content["machine"]
    return (
        f"Measured with `{measured['command']}`, {measured['date']}, on {machine['device_name']}, torch"
        f" {machine['torch']}; figures in `benchmarks/results/cuda/{name}.json`."
    )


def _told(content: Mapping[str, Any]) -> str:
    if "passed" in content:
        return _tests(content)
    rows: Sequence[Mapping[str, Any]] = content["rows"]
    names = list(dict.fromkeys(name for row in rows for name in row))
    left = next((place for place, name in enumerate(names) if _number(rows[0].get(name))), len(names))
    return table(
        [name.replace("_", " ") for name in names], [[_cell(row.get(name)) for name in names] for row in rows], left
    )


def _tests(content: Mapping[str, Any]) -> str:
    failed, skipped = content["failed"], content["skipped"]
    lines = [f"{count(content['passed'])} tests passed, {count(len(failed))} failed."]
    lines += [f"- failed: `{name}`" for name in failed]
    lines += [f"- skipped: {count(number)}, {reason}" for reason, number in skipped.items()]
    lines += [f"- not installed there: {joined(content['missing'])}"] if content["missing"] else []
    return "\n".join([lines[0], *([""] if lines[1:] else []), *lines[1:]])


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _cell(value: Any) -> str:
    if _number(value):
        return significant(value)
    return "" if value is None else str(value)
