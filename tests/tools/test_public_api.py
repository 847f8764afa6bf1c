"""What callers rely on changes only together with ``tests/public_api.txt``, where a review sees it."""

from __future__ import annotations

import difflib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.toys import ROOT

pytest.importorskip("griffe", reason="needs mkdocstrings, of the extra docs")

from tools.public_api import FILE, commands, entry_points, signatures

REGENERATE = "python -m tools.command_line && python -m tools.public_api"


def changes(before: str, after: str) -> str:
    """Both texts compared, as a reviewer reads it, and what to do; empty if they are equal."""
    lines = list(
        difflib.unified_diff(before.splitlines(), after.splitlines(), "in the file", "in the code", "", "", 0, "")
    )
    return "\n".join([*lines, f"if that is meant (and in CHANGELOG.md), run: {REGENERATE}"]) if lines else ""


def test_the_public_api_is_as_written() -> None:
    """Read by a process of its own: what other tests register is no part of it."""
    done = subprocess.run(
        [sys.executable, "-c", "from tools.public_api import text; print(text(), end='')"],
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8"},
        cwd=ROOT,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = changes(FILE.read_text(encoding="utf-8"), done.stdout)
    assert not found, f"the public API changed:\n{found}"


def test_a_change_is_told_line_by_line() -> None:
    assert changes("same\n", "same\n") == ""
    told = changes("a(x: int)\nb\n", "a(x: int = 3)\nb\n").splitlines()
    assert told[3:] == ["-a(x: int)", "+a(x: int = 3)", f"if that is meant (and in CHANGELOG.md), run: {REGENERATE}"]


def test_nothing_of_the_file_depends_on_the_machine() -> None:
    text = FILE.read_text(encoding="utf-8")
    assert " at 0x" not in text and str(Path.home()) not in text and str(ROOT) not in text
    lines = text.splitlines()
    assert len(lines) > 1000 and max(map(len, lines)) < 2000


PACKAGE = """
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import NamedTuple
from packaged.inside import Shown as Shown
__all__ = ["CONSTANT", "Base", "Config", "Pair", "Shown", "f"]
CONSTANT = (1, 2)
_HIDDEN = 3
@dataclass(frozen=True)
class Config:
    size: int
    many: list[int] = field(default_factory=list)
    def doubled(self, *, times: float = 2.0) -> "Config": ...
    def _own(self): ...
class _Below(OrderedDict):
    def inherited(self): ...
class Base(_Below):
    def __init__(self, first, second=None):
        self.first = first + 1
        self._second = second
    @property
    def both(self) -> int: ...
    @classmethod
    def made(cls, text: str) -> "Base": ...
class Pair(NamedTuple):
    left: int
    right: int = 0
def f(*rows: int, **options) -> None: ...
"""


def test_lines_say_what_is_called_and_what_is_held(tmp_path: Path) -> None:
    package = tmp_path / "packaged"
    package.mkdir()
    (package / "__init__.py").write_text(PACKAGE)
    (package / "inside.py").write_text("class Shown(Exception): ...\n")
    shown = [f"packaged.{name}" for name in ("Base", "CONSTANT", "Config", "Pair", "Shown", "f")]
    assert sorted(signatures(tmp_path, ("packaged",), shown)) == [
        "packaged.Base(first, second=None) [class of _Below]",
        "packaged.Base.both: int [property]",
        "packaged.Base.first",
        "packaged.Base.inherited()",
        "packaged.Base.made(text: str) -> Base [classmethod]",
        "packaged.CONSTANT = (1, 2)",
        "packaged.Config(size: int, many: list[int] = list()) [class]",
        "packaged.Config.doubled(*, times: float = 2.0) -> Config",
        "packaged.Config.many: list[int] = field(default_factory=list)",
        "packaged.Config.size: int",
        "packaged.Pair(left: int, right: int = 0) [class of NamedTuple]",
        "packaged.Pair.left: int",
        "packaged.Pair.right: int = 0",
        "packaged.Shown [class of Exception]",
        "packaged.f(*rows: int, **options) -> None",
    ]
    assert set(signatures(tmp_path, ("packaged",), ["packaged"])) == set(signatures(tmp_path, ("packaged",), shown))


def test_commands_are_read_from_the_page() -> None:
    page = """# The command

## nas-ext doctor

Says what is here:

- nothing, maybe

```text
nas-ext doctor [OPTIONS]
```

- `--json`: Print JSON.
- `--jobs N`: How many (or none) at
  once. (at least 0; default: 2)

## fairseq-train --arch

Options. The architectures: `small`,
`large`.
"""
    assert commands(page) == [
        "fairseq-train --arch",
        "fairseq-train --arch large",
        "fairseq-train --arch small",
        "nas-ext doctor",
        "nas-ext doctor --jobs N (at least 0; default: 2)",
        "nas-ext doctor --json",
    ]


def test_entry_points_are_those_of_the_project() -> None:
    lines = entry_points(
        {
            "project": {
                "scripts": {"run": "a:main"},
                "optional-dependencies": {"more": []},
                "entry-points": {"nas_ext.hosts": {"one": "b:HOST"}},
            }
        }
    )
    assert {"command run = a:main", "extra more", "entry point nas_ext.hosts: one = b:HOST"} < set(lines)
    assert "group nas_ext.strategies" in lines
