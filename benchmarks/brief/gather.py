"""All benchmarks at their small sizes, one after the other, into the file of the machine."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.brief.declared import PREPARED, Brief, NoBrief, declared, lacking
from benchmarks.brief.machine_file import DONE, MachineFile
from benchmarks.brief.process import Ended, run, shortened
from nas_core.errors import NasExtError
from nas_core.files import read_json

__all__ = ["ROOT", "gathered"]

ROOT = Path(__file__).resolve().parents[2]
SKIPPED, FAILED, CUT_OFF = "skipped", "failed", "cut off"


def gathered(
    modules: Mapping[str, str], file: MachineFile, work: Path, again: bool = False, limit_s: float | None = None
) -> list[str]:
    """Run benchmarks that are not done yet and keep how each ended; the names of those that failed or were cut off.

    Args:
        modules: the module of each benchmark by its name.
        work: each gets a new folder here, with its log and its result.
        again: also run those that are done.
        limit_s: seconds of each, instead of its own limit.
    """
    bad = []
    for place, (name, module) in enumerate(modules.items(), 1):
        try:
            brief: Brief | NoBrief | Exception = declared(module)
        except Exception as error:  # whatever an import may raise: the others still run
            brief = error
        if isinstance(brief, Brief) and not again and file.has(name, brief.size):
            told = "done before"
        else:
            entry = _entry(name, module, brief, work, limit_s)
            file.keep(name, entry)
            told = entry["status"] + (f": {entry['reason']}" if "reason" in entry else f" in {entry['seconds']:.0f} s")
            bad += [name] if entry["status"] in (FAILED, CUT_OFF) else []
        print(f"{place}/{len(modules)} {name}: {told}", flush=True)
    return bad


def _entry(
    name: str, module: str, brief: Brief | NoBrief | Exception, work: Path, limit_s: float | None
) -> dict[str, Any]:
    if isinstance(brief, Exception):
        return {"status": FAILED, "reason": shortened(f"{type(brief).__name__}: {brief}".splitlines()[0])}
    if isinstance(brief, NoBrief):
        return {"status": SKIPPED, "reason": shortened(brief.reason)}
    if reason := lacking(brief.modules, brief.files):
        return {"status": SKIPPED, "size": brief.size, "reason": reason}
    folder = work / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    result = folder / "result.json"
    prepared, before = work / "translation", 0.0
    if PREPARED in brief.size:
        first = _run([sys.executable, "-m", "benchmarks.brief.prepared", str(prepared)], folder, brief.limit_s)
        if first.code != 0:
            return {"status": FAILED, "size": brief.size, "reason": f"preparing: {first.last}"}
        before = first.seconds
    command = [sys.executable, "-m", module, *brief.arguments(prepared), "--out", str(result)]
    limit_s = brief.limit_s if limit_s is None else limit_s
    ended = _run(command, folder, limit_s)
    taken: dict[str, Any] = {"size": brief.size, "seconds": round(ended.seconds, 1), "cpu_s": round(ended.cpu_s, 1)}
    if before:
        taken["prepared_s"] = round(before, 1)
    if ended.others is not None:
        taken["others_cores"] = round(ended.others, 2)
    if ended.code is None:
        return {"status": CUT_OFF, **taken, "reason": f"not done after {limit_s:g} s"}
    if ended.code != 0:
        return {"status": FAILED, **taken, "reason": ended.last or f"exit code {ended.code}"}
    if not result.exists():
        status = SKIPPED if ended.last.startswith("skipped") else FAILED
        return {"status": status, **taken, "reason": ended.last.removeprefix("skipped: ") or "it wrote no result"}
    try:
        content = read_json(result)
        found = [{"what": each.what, "value": each.read(content), "unit": each.unit} for each in brief.figures]
    except NasExtError as error:
        return {"status": FAILED, **taken, "reason": shortened(str(error))}
    return {"status": DONE, **taken, "figures": found}


def _run(command: list[str], folder: Path, limit_s: float) -> Ended:
    """In a folder where nothing of a large run lies; it finds this repository, and published tables, all the same."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *_paths()])}
    if data := os.environ.get("NAS_EXT_DATA"):
        environment["NAS_EXT_DATA"] = str(Path(data).resolve())
    return run(command, folder, environment, limit_s)


def _paths() -> list[str]:
    return [str(Path(each).resolve()) for each in os.environ.get("PYTHONPATH", "").split(os.pathsep) if each]
