"""``python -m benchmarks [NAME ...]``: run these benchmarks, or all, each in its own process.

``NAME OPTION ...`` passes options to one benchmark.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parent


def modules() -> dict[str, str]:
    """Return name -> module of each benchmark."""
    files = sorted(FOLDER.glob("*/[a-z]*.py"), key=lambda file: file.stem)
    return {file.stem: f"benchmarks.{file.parent.name}.{file.stem}" for file in files if file.parent.name != "parts"}


def main(argv: list[str] | None = None) -> int:
    arguments = list(sys.argv[1:] if argv is None else argv)
    benchmarks = modules()
    name_count = next((index for index, argument in enumerate(arguments) if argument not in benchmarks), len(arguments))
    options = [] if name_count == 0 else [option for option in arguments[name_count:] if option != "--"]
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(benchmarks)}; default: all")
    names = parser.parse_args(arguments[: len(arguments) - len(options)]).names or list(benchmarks)
    if unknown := [name for name in names if name not in benchmarks]:
        parser.error(f"unknown benchmark {unknown[0]!r}; expected one of {', '.join(benchmarks)}")
    if options and len(names) != 1:
        parser.error(f"{options[0]!r} is an option, but several benchmarks are given; give options with one benchmark")
    failed = []
    for name in names:
        print(f"== {name}", flush=True)
        if subprocess.run([sys.executable, "-m", benchmarks[name], *options], cwd=FOLDER.parent).returncode:
            failed.append(name)
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return int(bool(failed))


if __name__ == "__main__":
    raise SystemExit(main())
