"""``make test-cuda``: every test of a kind of device on CUDA, with the machine's own Python and torch.

Only the files ``test_*_on_device.py`` are collected, see ``tests/devices.py``. What the machine lacks is named, tests
that need it are skipped, and why is counted in the result.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import re
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tools.plain_machine import device_lines, device_problem, missing_modules

__all__ = ["Outcomes", "main"]

ROOT = Path(__file__).resolve().parents[1]
RESULT = ROOT / "benchmarks" / "results" / "cuda" / "tests.json"
WORKERS = 4
"""Processes at a time on a CUDA device, which small networks share well."""


class Outcomes:
    """A plug-in of pytest that keeps how each test ended."""

    def __init__(self) -> None:
        self.passed = 0
        self.failed: list[str] = []
        self.skipped: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            self.failed.append(report.nodeid)
        elif report.skipped:
            self._skip(report.longrepr)
        elif report.when == "call":
            self.passed += 1

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self.failed.append(report.nodeid)
        elif report.skipped:
            self._skip(report.longrepr)

    def _skip(self, location: Any) -> None:
        reason = location[2] if isinstance(location, tuple) else str(location)
        self.skipped[re.sub(r"^Skipped: ", "", reason)] += 1

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "passed": self.passed,
            "failed": sorted(set(self.failed)),
            "skipped": dict(sorted(self.skipped.items())),
        }


def main(argv: Sequence[str] | None = None) -> int:
    """Run the tests; pytest's exit code, or 2 where there is no such device."""
    parser = argparse.ArgumentParser(prog="python -m tests.on_cuda", description=__doc__)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda", help="cpu: the same tests on the CPU")
    parser.add_argument("--workers", type=int, help=f"processes at a time; default: {WORKERS} on cuda, else 1")
    parser.add_argument("--out", type=Path, help=f"result; default on cuda: {RESULT.relative_to(ROOT)}, else none")
    parser.add_argument("paths", nargs="*", type=Path, help="files or folders; default: all tests of devices")
    options = parser.parse_args(argv)
    reason = device_problem(options.device)
    if reason is None and importlib.util.find_spec("pytest") is None:
        reason = f"{sys.executable} has no pytest; install it"
    if reason is not None:
        print(reason, file=sys.stderr)
        return 2
    print("\n".join(device_lines(options.device)), flush=True)
    outcomes, begin = Outcomes(), time.perf_counter()
    code = _run(options.device, options.workers, _files(options.paths), outcomes)
    out = options.out or (RESULT if options.device == "cuda" else None)
    if out is not None:
        _write(out, options.device, outcomes, time.perf_counter() - begin, argv)
    return code


def _files(paths: Sequence[Path]) -> list[str]:
    results: list[Path] = []
    for path in [given if given.exists() else ROOT / given for given in paths] or [ROOT / "tests"]:
        results += sorted(path.rglob("test_*_on_device.py")) if path.is_dir() else [path]
    return [str(path) for path in results]


def _run(device: str, workers: int | None, files: list[str], outcomes: Outcomes) -> int:
    import pytest

    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # torch requires it for deterministic products
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    marked = "device and cuda" if device == "cuda" else "device and not cuda"
    count = workers or (WORKERS if device == "cuda" else 1)
    shared = ["-n", str(count), "--dist", "loadfile"] if count > 1 and importlib.util.find_spec("xdist") else []
    arguments = ["-o", "addopts=--import-mode=importlib -ra", "-q", "-p", "no:cacheprovider", "-m", marked]
    arguments.append("--continue-on-collection-errors")  # what does not import is one failure
    return int(pytest.main([*arguments, *shared, *files], plugins=[outcomes]))


def _write(out: Path, device: str, outcomes: Outcomes, seconds: float, argv: Sequence[str] | None) -> None:
    from benchmarks.parts.record import write_result
    from nas_core.latency.machine import describe_machine

    command = " ".join(map(str, sys.argv[1:] if argv is None else argv))
    content = {
        "machine": describe_machine(device, 1),
        "python": sys.version.split()[0],
        "missing": missing_modules(),
        "seconds": round(seconds, 1),
        **outcomes.to_dict(),
    }
    out.parent.mkdir(parents=True, exist_ok=True)
    write_result(out, content, f"make test-cuda{f' ARGS={command!r}' if command else ''}")


if __name__ == "__main__":
    raise SystemExit(main())
