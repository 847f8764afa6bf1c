"""``python -m tools.compatibility``: try what nas-ext can be installed with, note it, and write the table of its page.

Wheel and sdist are built once. Each combination gets an empty environment: it is installed, ``uv pip check`` and
``nas-ext doctor`` look at it, a program of ``tools/compatibility/programs`` uses it, and it is deleted. What came of it
is noted after each one, with its interpreter, system, date and version of nas-ext; a later run keeps what it does not
try again. It tries what did not work, and what was tried with another version of nas-ext or other requirements.
Settings of uv, such as ``UV_FIND_LINKS``, hold; with ``TORCH_INDEX`` torch comes from that package index.

A failure that stays gets its reason by hand: a text ``why`` in its entry of ``results.json``, which the page shows. It
is kept as long as the failure is the same.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from nas_core.files import write_atomic, write_json
from tools.compatibility.environment import build, find_uv
from tools.compatibility.matrix import EXTRAS, PYTHONS, Combination, combinations, project, requirements
from tools.compatibility.page import PAGE, RESULTS, page
from tools.compatibility.resolving import resolve
from tools.compatibility.trying import to_try, try_one

ROOT = Path(__file__).resolve().parents[2]


def main() -> int:
    """Run what is asked for; 1 if anything did not work."""
    parser = argparse.ArgumentParser(prog="python -m tools.compatibility", description="Try what nas-ext runs with.")
    parser.add_argument("--extras", nargs="+", choices=EXTRAS, default=EXTRAS, help="only these")
    parser.add_argument("--pythons", nargs="+", choices=PYTHONS, default=PYTHONS, help="only these")
    parser.add_argument("--versions", choices=("newest", "lowest"), help="only these, of what nas-ext depends on")
    parser.add_argument("--again", action="store_true", help="also what worked before")
    parser.add_argument("--resolve", action="store_true", help="only ask which systems there are wheels for")
    parser.add_argument("--page", action="store_true", help="only write the page's table anew")
    parser.add_argument("--work", type=Path, default=ROOT / "build" / "compatibility", help="folder for environments")
    options = parser.parse_args()
    noted: dict[str, Any] = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.is_file() else {}
    failed = 0
    if not options.page:
        if os.environ.get("TORCH_INDEX"):
            os.environ.update(UV_INDEX=os.environ["TORCH_INDEX"], UV_INDEX_STRATEGY="unsafe-best-match")
        failed = _try(options, noted)
    write_atomic(PAGE, page(PAGE.read_text(encoding="utf-8"), noted, project()))
    return 1 if failed else 0


def _try(options: argparse.Namespace, noted: dict[str, Any]) -> int:
    """Try, and note after each; returns how many did not work."""
    uv, settings, work = find_uv(), project(), options.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    if options.resolve:
        noted["resolved"] = resolve(uv, work, settings)
        write_json(RESULTS, noted)
        return 0
    system = f"{platform.system()} {platform.machine()}"
    pythons = {python: _interpreter(uv, python) for python in options.pythons}
    wanted = [one for one in combinations(options.pythons, options.extras) if options.versions in (None, one.versions)]
    tried = {_key(one): one for one in noted.get("tried", [])}
    built = build(uv, ROOT, work)
    failed = 0
    for one in wanted:
        before = tried.get((system, one))
        if pythons[one.python] is None or not (options.again or to_try(before, settings)):
            continue
        print(" ".join(one), end=": ", flush=True)
        found, said = try_one(one, work, uv, built, settings)
        about = {
            "system": system,
            "interpreter": pythons[one.python],
            "date": datetime.date.today().isoformat(),
            "nas_ext": str(settings["version"]),
            "asked": requirements(settings, one.extra),
        }
        why = {"why": before["why"]} if before and before["result"] == found["result"] and "why" in before else {}
        tried[system, one] = {**one._asdict(), **about, **found, **why}
        print(found["result"], flush=True)
        failed += bool(said)
        if said:
            print(said, file=sys.stderr)
        systems = sorted({each for each, _ in tried})
        known = [(each, combination) for each in systems for combination in combinations()]
        noted["tried"] = [tried[each] for each in known if each in tried]
        write_json(RESULTS, noted)
    return failed


def _key(row: dict[str, Any]) -> tuple[str, Combination]:
    return row["system"], Combination(*(row[name] for name in Combination._fields))


def _interpreter(uv: str, python: str) -> str | None:
    """The whole version of an interpreter of this machine, None without one."""
    found = subprocess.run(
        [uv, "python", "find", "--no-python-downloads", "--system", python],
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    if found.returncode:
        return None
    return re.sub(r"^Python ", "", _said([found.stdout.strip(), "--version"])).strip()


def _said(command: list[str]) -> str:
    return subprocess.run(command, capture_output=True, encoding="utf-8", check=True).stdout


if __name__ == "__main__":
    sys.exit(main())
