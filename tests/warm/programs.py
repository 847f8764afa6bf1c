"""The environment in which programs start at once, see ``server.py``."""

from __future__ import annotations

import atexit
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from tests.warm.client import PLACE
from tests.warm.server import READ_AT_IMPORT

COLD = "NAS_EXT_COLD"
"""The variable with which every program is started anew, as users do."""
PROGRAMS = r"python(3(\.\d+)?)?|nas-ext|fairseq-(preprocess|train|validate|generate|interactive)"
"""What the names of the programs are that start at once."""
THREADS = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
"""What libraries read when they are imported: a process of several threads cannot be forked."""
HERE = Path(__file__).parent
ROOT = HERE.parents[1]
LONGEST = 107
"""Bytes of a socket's path, as Linux has it."""


def warm(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment with the programs that start at once first on its path, and with one thread for each.

    The first call of a process starts their server; until that is ready, programs start as they always do.
    """
    variables = {**environment, **THREADS}
    if os.environ.get(COLD):
        return variables
    folder, _, then = _started()
    for name in os.environ.keys() - then.keys():  # libraries of this process have set it, since
        if name.startswith(READ_AT_IMPORT) and variables.get(name) == os.environ[name]:
            del variables[name]
    return {**variables, "PATH": f"{folder}{os.pathsep}{variables['PATH']}", PLACE: str(folder / "socket")}


def python() -> tuple[str, dict[str, str]]:
    """The ``python`` that starts at once, and variables with which it imports what is tested here."""
    programs = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    paths = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
    environment = warm({**os.environ, "PATH": programs, "PYTHONPATH": paths})
    return str(shutil.which("python", path=environment["PATH"])), environment


def wait_until_warm(seconds: float = 120) -> None:
    """Return when the server is ready; where it has ended, the error holds its output."""
    folder, server, _ = _started()
    end = time.monotonic() + seconds
    while not (folder / "socket").exists():
        if server.poll() is not None:
            output = (folder / "errors").read_text(encoding="utf-8", errors="replace")
            raise AssertionError(f"the server of warm programs has ended:\n{output}")
        assert time.monotonic() < end, "the server of warm programs does not start"
        time.sleep(0.05)


@cache
def _started() -> tuple[Path, subprocess.Popen[bytes], dict[str, str]]:
    """The folder of the programs and of the server's socket; the server, which lives as long as this process; and the
    variables of that moment."""
    then = dict(os.environ)
    folder = Path(tempfile.mkdtemp(prefix="warm-"))
    if len(os.fsencode(folder / "socket.new")) > LONGEST:
        folder.rmdir()
        folder = Path(tempfile.mkdtemp(prefix="warm-", dir="/tmp"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    for program in Path(sys.executable).parent.iterdir():
        path = folder / program.name
        if re.fullmatch(PROGRAMS, program.name):
            _write_program(path, sys.executable, "-IS", str(HERE / "client.py"), str(path))
        elif os.access(program, os.X_OK):  # programs look for others in the folder of their Python
            _write_program(path, str(program))
    read, write = os.pipe()
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    with open(folder / "errors", "wb") as errors:
        server = subprocess.Popen(
            [sys.executable, str(HERE / "server.py"), str(folder / "socket"), str(read)], pass_fds=[read],
            env={**environment, **THREADS}, cwd=folder,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors,
        )  # fmt: skip
    os.close(read)
    atexit.register(os.close, write)
    return folder, server, then


def _write_program(path: Path, *command: str) -> None:
    """Write a program that is `command`: by a link Python does not find its environment, and ``#!`` takes no blank."""
    path.write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n', encoding="utf-8")
    path.chmod(0o755)
