"""Put small faults into central files of the core and see whether their tests notice (``make mutants``)."""

from __future__ import annotations

import argparse
import datetime
import shlex
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from benchmarks.parts.record import write_result
from nas_core.errors import NasExtError
from nas_core.files import read_json
from tools.mutants.plan import drawn, mutants_of
from tools.mutants.settings import ROOT, Settings, read_settings
from tools.mutants.tester import UNTRIED, prepare, results, try_mutants, try_timeouts_again
from tools.mutants.verdict import ACCEPTED, Accepted, Found, judge, read_accepted, verdict


def main(argv: Sequence[str] | None = None, root: Path = ROOT) -> int:
    """The program; returns 0 if enough was caught and every survivor is explained, else 1 (2 for wrong input)."""
    parser = argparse.ArgumentParser(prog="python -m tools.mutants", description=__doc__)
    parser.add_argument("files", nargs="*", metavar="FILE", help="files of the table in pyproject.toml; default: all")
    parser.add_argument("--survivors", action="store_true", help="only what no test caught the last time")
    parser.add_argument("--sample", type=int, help="most mutants of a file, instead of the table's number")
    parser.add_argument(
        "--out",
        type=Path,
        default=root / "benchmarks/results/mutants.json",
        help="summary; default: benchmarks/results/mutants.json",
    )
    parser.add_argument(
        "--work", type=Path, default=root / "build/mutants", help="folder to work in; default: build/mutants"
    )
    given = parser.parse_args(argv)
    try:
        settings, accepted = read_settings(root), read_accepted(root / ACCEPTED)
        if unknown := sorted(set(given.files) - set(settings.files)):
            parser.error(f"{unknown[0]} is not in the table; expected some of {', '.join(settings.files)}")
        if gone := sorted({entry.file for entry in accepted} - set(settings.files)):
            raise NasExtError(f"{ACCEPTED} accepts mutants of {gone[0]}, which is not in the table of pyproject.toml")
        most = given.sample or settings.sample
        found = []
        for file in given.files or settings.files:
            found.append(_of_file(file, given.work, settings, most, accepted, given.survivors))
            print(found[-1], flush=True)
            _add(given.out, found[-1], settings, given)
    except NasExtError as error:
        print(f"mutants: {error}", file=sys.stderr)
        return 2
    lines, enough = verdict(found, settings.share)
    print("\n".join(lines))
    return 0 if enough else 1


def _of_file(
    file: str, work: Path, settings: Settings, most: int, accepted: Sequence[Accepted], survivors: bool
) -> Found:
    folder = work / file.removesuffix(".py").replace("/", ".")
    prepare(folder, file, settings, keep=survivors)
    mutants = mutants_of(folder, file)
    chosen = drawn(mutants, most, f"{settings.seed} {file}")
    statuses = results(folder)
    again = (*UNTRIED, "survived", "no tests", "suspicious") if survivors else UNTRIED
    if left := [mutant for mutant in chosen if statuses.get(mutant.name, UNTRIED[0]) in again]:
        print(f"{file}: {len(left)} of {len(mutants)} mutants", flush=True)
        try_mutants(folder, left)
    try_timeouts_again(folder, chosen)
    statuses = results(folder)
    if stopped := [mutant for mutant in chosen if statuses.get(mutant.name, UNTRIED[0]) in UNTRIED]:
        raise NasExtError(f"{file}: {len(stopped)} mutants were not tried to the end; run the same command to go on")
    return judge(file, mutants, chosen, statuses, accepted)


def _add(out: Path, found: Found, settings: Settings, given: argparse.Namespace) -> None:
    files = read_json(out).get("files", {}) if out.exists() else {}
    sample = ["--sample", str(given.sample)] if given.sample else []
    arguments = [*given.files, *sample, *(["--survivors"] if given.survivors else [])]  # no folders of one machine
    run = f"make mutants{f' ARGS={shlex.quote(shlex.join(arguments))}' if arguments else ''}"
    record = {"date": datetime.date.today().isoformat(), "command": run}  # others of the file are of other runs
    record |= {**found.record(), "drawn": found.tried < found.mutants, "tests": settings.files[found.file]}
    # Tests were added since, and what was caught before was not tried again with them.
    record["survivors_alone_tried_again"] = given.survivors
    files[found.file] = record
    files = {name: files[name] for name in settings.files if name in files}
    content = {
        "tester": f"mutmut {version('mutmut')}",
        "seed": settings.seed,
        "tried": sum(each["tried"] for each in files.values()),
        "caught": sum(each["caught"] for each in files.values()),
        "files": files,
    }
    write_result(out, content, run)


if __name__ == "__main__":
    sys.exit(main())
