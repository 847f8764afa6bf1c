"""``make bench``: each benchmark that states a small size, run once at it, into ``benchmarks/results/machines``.

One file for each machine, written after every benchmark: the same command goes on after an interruption, and measures
again only what failed, was stated at another size or belongs to other software. Results of large runs are not
touched; those are ``python -m benchmarks NAME``.
"""

from __future__ import annotations

import argparse
import re
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.__main__ import modules
from benchmarks.brief.gather import ROOT, gathered
from benchmarks.brief.machine_file import MachineFile, default_name
from nas_core.errors import NasExtError

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run them; 0 if each is done or says what it lacks, 1 if one failed or was cut off."""
    known = modules()
    parser = argparse.ArgumentParser(prog="python -m benchmarks.brief", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(known)}; default: all")
    parser.add_argument("--name", help="of the machine; default: its processor and cores")
    parser.add_argument("--again", action="store_true", help="also those that are done")
    parser.add_argument("--limit-s", type=float, help="seconds of each; default: as it states")
    parser.add_argument(
        "--out", type=Path, default=ROOT / "benchmarks" / "results" / "machines", help="folder of files"
    )
    parser.add_argument("--work", type=Path, default=ROOT / "runs" / "bench", help="folder of logs and results")
    options = parser.parse_args(argv)
    if unknown := [name for name in options.names if name not in known]:
        parser.error(f"unknown benchmark {unknown[0]!r}: expected one of {', '.join(known)}")
    name = default_name() if options.name is None else options.name
    if not re.fullmatch(r"[\w][\w.-]*", name):
        parser.error(f"--name {name!r}: expected letters, digits, points and hyphens")
    try:
        file = MachineFile(options.out / f"{name}.json")
    except NasExtError as error:
        parser.error(str(error))
    for number in (signal.SIGTERM, signal.SIGINT):  # so that no benchmark lives on; a shell may have left one ignored
        signal.signal(number, signal.default_int_handler)
    wanted = {each: known[each] for each in options.names or known}
    try:
        failed = gathered(wanted, file, options.work.resolve(), options.again, options.limit_s)
    except KeyboardInterrupt:
        print("interrupted; the same command goes on from there", file=sys.stderr)
        return 130
    print(file.path)
    if failed:
        print(f"failed or cut off: {', '.join(failed)}; see log.txt in {options.work}/NAME", file=sys.stderr)
    return int(bool(failed))


if __name__ == "__main__":
    raise SystemExit(main())
