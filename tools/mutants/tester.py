"""One file under mutmut: a folder of its own, its own tests, and what became of each mutant."""

from __future__ import annotations

import configparser
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from nas_core.errors import NasExtError
from nas_core.files import make_folder, read_json, write_atomic, write_json
from nas_core.optional import install_line
from tools.mutants.plan import Mutant
from tools.mutants.settings import Settings

__all__ = ["CAUGHT", "UNTRIED", "prepare", "results", "try_mutants", "try_timeouts_again"]

CAUGHT = ("killed", "timeout", "segfault")
"""What mutmut says of a mutant that a test noticed: a test failed, never ended (twice) or took the interpreter down."""
UNTRIED = ("not checked", "check was interrupted by user")
"""What it says of one that was not tried to the end."""
STAMP = "tried-against"
TWICE = "timeouts-tried-twice.json"


def prepare(folder: Path, file: str, settings: Settings, keep: bool = False) -> None:
    """A folder in which mutmut mutates ``file`` alone: links to the checkout, and a configuration.

    What is there from an earlier run stays as long as the file, its tests and the settings are those of then, or if it
    is to be kept (``keep``) all the same; otherwise all begins anew.
    """
    tests = settings.files[file]
    # mutmut forgets by itself what it found with another selection of tests, in the middle of a run.
    stamp = f"{' '.join(tests)} {_digest(settings.root, [file, *tests])}"
    known = folder / STAMP
    if not keep and known.exists() and known.read_text(encoding="utf-8") != stamp:
        shutil.rmtree(folder)
    make_folder(folder)
    package = Path(file).parts[0]
    for name in (package, "tests", "pyproject.toml", *settings.beside):
        link = folder / name
        if not link.is_symlink():
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(settings.root / name)
    parser = configparser.ConfigParser()
    parser["mutmut"] = {
        "source_paths": _lines([package]),
        "only_mutate": _lines([file]),
        "pytest_add_cli_args_test_selection": _lines(tests),
        "also_copy": _lines(settings.beside),
        # A mutant is a fork of a process that imported torch and the tests and ran nothing: no second of imports each.
        "process_isolation": "forkserver",
    }
    with (folder / "setup.cfg").open("w", encoding="utf-8") as out:
        parser.write(out)
    if not (keep and known.exists()):  # what is kept was tried against other tests: the next whole run begins anew
        write_atomic(known, stamp)


def try_mutants(folder: Path, mutants: Sequence[Mutant]) -> None:
    """Run mutmut over these mutants, one after the other; what it found stays in the folder.

    Raises:
        NasExtError: it ended in an error, most often as the tests fail without any mutant; its last lines are told.
    """
    # Tests ask for this many threads; more processes than one would share them, and some measure time.
    command = [*_mutmut(), "run", "--max-children", "1", *(mutant.name for mutant in mutants)]
    # sympy, which torch imports at its first gradient, comes before the forks, as a plug-in of pytest without hooks.
    environment = {"OMP_NUM_THREADS": "1", "PYTEST_ADDOPTS": "-p sympy", **os.environ}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        told = (done.stdout + done.stderr).replace("\r", "\n").splitlines()
        raise NasExtError(f"mutmut ended with status {done.returncode} in {folder}: {' / '.join(told[-8:])}")


def try_timeouts_again(folder: Path, mutants: Sequence[Mutant]) -> None:
    """Run mutmut once more over those of these mutants that ran out of time: on a busy machine any may.

    Which were tried twice is kept in the folder, and they are not tried a third time.
    """
    known = folder / TWICE
    twice = set(read_json(known)) if known.exists() else set()
    statuses = results(folder)
    if left := [each for each in mutants if statuses.get(each.name) == "timeout" and each.name not in twice]:
        try_mutants(folder, left)
        statuses = results(folder)
        # One whose second try was cut off is tried again as untried, and once more if its time is over.
        twice |= {each.name for each in left if statuses.get(each.name, UNTRIED[0]) not in UNTRIED}
        write_json(known, sorted(twice))


def results(folder: Path) -> dict[str, str]:
    """What mutmut says of each mutant by its name: ``killed``, ``survived``, ``timeout``, ``not checked`` and so on."""
    if not (folder / "mutants").exists():
        return {}
    done = subprocess.run(
        [*_mutmut(), "results", "--all", "true"], cwd=folder, capture_output=True, text=True, check=True
    )
    told = (line.strip().rpartition(": ") for line in done.stdout.splitlines() if ": " in line)
    return {name: status for name, _, status in told}


def _mutmut() -> list[str]:
    # Its own program: `python -m mutmut` loads its main module twice.
    program = shutil.which("mutmut", path=str(Path(sys.executable).parent))
    if program is None:
        raise NasExtError(f"mutmut is not installed beside this Python: run {install_line('mutants')}, or make mutants")
    return [program]


def _lines(names: Iterable[str]) -> str:
    return "".join(f"\n{name}" for name in names)


def _digest(root: Path, names: Iterable[str]) -> str:
    digest = hashlib.sha256()
    for name in names:
        path = root / name
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            digest.update(file.relative_to(root).as_posix().encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()
