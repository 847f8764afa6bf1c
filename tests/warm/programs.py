"""The environment in which programs start at once, see ``server.py``."""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from tests.warm.client import PLACE

COLD = "NAS_EXT_COLD"
"""The variable with which every program is started anew, as users do."""
PROGRAMS = (
    "python", "python3", "nas-ext", "fairseq-preprocess", "fairseq-train", "fairseq-validate", "fairseq-generate",
    "fairseq-interactive",
)  # fmt: skip
HERE = Path(__file__).parent


def warm(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment with the programs that start at once first on its path.

    The first call of a process starts their server; until that is ready, programs start as they always do.
    """
    known = {"OMP_NUM_THREADS": "1", **environment}
    if os.environ.get(COLD):
        return known
    folder = _folder()
    return {**known, "PATH": f"{folder}{os.pathsep}{known['PATH']}", PLACE: str(folder / "socket")}


def wait_until_warm(seconds: float = 120) -> None:
    """Return when the server is ready."""
    end = time.monotonic() + seconds
    while not (_folder() / "socket").exists():
        assert time.monotonic() < end, "the server of warm programs does not start"
        time.sleep(0.05)


@cache
def _folder() -> Path:
    """The programs and the socket of the server, which lives as long as this process."""
    folder = Path(tempfile.mkdtemp(prefix="warm-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    client = (HERE / "client.py").read_text(encoding="utf-8")
    for program in Path(sys.executable).parent.iterdir():
        here = folder / program.name
        if program.name in PROGRAMS:
            here.write_text(f"#!{sys.executable} -IS\n{client}", encoding="utf-8")
            here.chmod(0o755)
        else:  # programs look for others beside their Python
            here.symlink_to(program)
    read, write = os.pipe()
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    subprocess.Popen(
        [sys.executable, str(HERE / "server.py"), str(folder / "socket"), str(read)], pass_fds=[read],
        env={**environment, "OMP_NUM_THREADS": "1"}, cwd=folder,
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    os.close(read)
    atexit.register(os.close, write)
    return folder
