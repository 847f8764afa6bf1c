"""An empty environment: made, installed into, run in, and deleted."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

__all__ = ["Environment", "Failed", "build", "find_uv", "packages", "shortened"]

LIMIT_S = 1800
NO_COMPILER = {"CC": "no-compiler-here", "CXX": "no-compiler-here"}
"""With these an installation that compiles anything fails."""
_ADDRESSES = re.compile(r"[a-z][a-z0-9+.-]*://[^\s'\"`<>|)\]]+|(?<=host=)'[^']*'", re.IGNORECASE)
_FOLDERS = re.compile(r"(?<![\w.])/(?:[^\s/'\":]+/)+")


def shortened(line: str, longest: int = 200) -> str:
    """Return a line without addresses and folders, which belong to one machine."""
    return _FOLDERS.sub("", _ADDRESSES.sub("URL", line))[:longest]


class Failed(Exception):
    """A command that ended otherwise than with 0: what was asked, and the last lines of what it said.

    Its last line (``last``) is what is noted, without addresses and folders: those belong to one machine.
    """

    def __init__(self, command: Sequence[str], said: str) -> None:
        last = next((line.strip() for line in reversed(said.splitlines()) if line.strip()), "it said nothing")
        self.last = shortened(last)
        super().__init__(f"{' '.join(command)}\n{said[-4000:]}")


class Environment:
    """A virtual environment in ``folder``, with the Python of that version.

    Commands run in an empty folder beside it, with this program's variables but those of Python, of virtual
    environments and of a CUDA toolkit.
    """

    def __init__(self, folder: Path, uv: str, python: str) -> None:
        self.folder, self.uv = folder, uv
        self.python = folder / "venv" / "bin" / "python"
        self.here = folder / "here"
        shutil.rmtree(folder, ignore_errors=True)
        self.here.mkdir(parents=True)
        self.run([uv, "venv", "--quiet", "--no-python-downloads", "--python", python, str(folder / "venv")])

    def run(self, command: Sequence[str], extra: Mapping[str, str] | None = None) -> str:
        """What a command says.

        Raises:
            Failed: it did not end with 0, or not in time.
        """
        path = f"{self.python.parent}{os.pathsep}{os.environ['PATH']}"
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
        kept.pop("CUDA_HOME", None)  # with it, fairseq wants CUDA kernels whose sources its archive lacks
        # Environments follow each other in one folder: what is compiled for one, such as torch, serves the next.
        compiled = str(self.folder.with_name("bytecode"))
        environment = {**kept, "PATH": path, "PYTHONPYCACHEPREFIX": compiled, "OMP_NUM_THREADS": "1", **(extra or {})}
        try:
            done = subprocess.run(
                list(command),
                cwd=self.here,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                encoding="utf-8",
                errors="replace",
                timeout=LIMIT_S,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            # It keeps what was written so far as bytes, whatever the encoding is.
            output = error.output.decode(errors="replace") if isinstance(error.output, bytes) else error.output or ""
            raise Failed(command, f"{output}\ndid not end within {LIMIT_S} s") from None
        if done.returncode:
            raise Failed(command, done.stdout)
        return done.stdout

    def install(self, *arguments: str, compiler: bool = False) -> None:
        """Install by uv; where nothing may be compiled, anything that would be fails."""
        command = [self.uv, "pip", "install", "--quiet", "--python", str(self.python), *arguments]
        self.run(command, {"CFLAGS": "-O0 -g0", "MAX_JOBS": "1"} if compiler else NO_COMPILER)

    def install_by_pip(self, *arguments: str) -> None:
        """Install by pip, in its newest version."""
        self.install("pip")
        self.run([str(self.python), "-m", "pip", "install", "--quiet", *arguments], NO_COMPILER)

    def check(self) -> None:
        """Whether all that is installed fits together.

        Raises:
            Failed: it does not.
        """
        self.run([self.uv, "pip", "check", "--quiet", "--python", str(self.python)])

    def versions(self) -> dict[str, str]:
        """What is installed, by name."""
        listed = self.run([self.uv, "pip", "freeze", "--python", str(self.python)])
        return dict(re.findall(r"^([\w.-]+)==(\S+)$", listed, re.MULTILINE))

    def delete(self) -> None:
        """Take everything away again."""
        shutil.rmtree(self.folder, ignore_errors=True)


def find_uv() -> str:
    """The program uv of this environment, or of the path.

    Raises:
        SystemExit: there is none.
    """
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    found = shutil.which("uv", path=path)
    if found is None:
        raise SystemExit("uv not found: pip install uv")
    return found


def build(uv: str, root: Path, folder: Path) -> dict[str, Path]:
    """The sdist of what git knows or would know of ``root``, and the wheel that is built from the sdist.

    Built from a copy, since setuptools leaves its lists in the folder that it builds from.
    """
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root,
        capture_output=True,
        encoding="utf-8",
        check=True,
    ).stdout.split("\0")
    source, out = folder / "source", folder / "dist"
    for one in (source, out):
        shutil.rmtree(one, ignore_errors=True)
    for name in listed:
        if name and (root / name).is_file():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(root / name, source / name)
    subprocess.run(
        [uv, "build", "--quiet", "--out-dir", str(out), str(source)], check=True, env={**os.environ, **NO_COMPILER}
    )
    (wheel,), (sdist,) = out.glob("*.whl"), out.glob("*.tar.gz")
    return {"wheel": wheel, "sdist": sdist}


def packages(requirements: Sequence[str]) -> list[str]:
    """The names in requirements, as registries write them."""
    return sorted({re.split(r"[^\w.-]", one, maxsplit=1)[0].lower().replace("_", "-") for one in requirements})
