"""``python -m benchmarks [NAME ...]``: run these benchmarks, or all of this folder, one after the other.

Each runs in a process of its own, so that none inherits another's threads or memory. ``NAME -- OPTION ...`` passes
options on to one of them.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parent


def names() -> list[str]:
    return sorted(file.stem for file in FOLDER.glob("*.py") if not file.stem.startswith("_"))


def main(argv: list[str] | None = None) -> int:
    arguments = list(sys.argv[1:] if argv is None else argv)
    options = arguments[arguments.index("--") + 1 :] if "--" in arguments else []
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(names())}; default: all")
    wanted = parser.parse_args(arguments[: len(arguments) - len(options)]).names or names()
    unknown = [name for name in wanted if name not in names()]
    if unknown:
        parser.error(f"unknown benchmark {unknown[0]!r}: expected one of {', '.join(names())}")
    if options and len(wanted) != 1:
        parser.error("options after -- go to one benchmark; name it")
    failed = []
    for name in wanted:
        print(f"== {name}", flush=True)
        if subprocess.run([sys.executable, "-m", f"benchmarks.{name}", *options], cwd=FOLDER.parent).returncode:
            failed.append(name)
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return int(bool(failed))


if __name__ == "__main__":
    raise SystemExit(main())
