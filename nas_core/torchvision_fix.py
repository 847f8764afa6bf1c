"""Lets a CUDA build of torchvision be imported beside a CPU build of torch, in this program or in a whole environment.

Our own packages repair the import in their process. ``python -m nas_core.torchvision_fix`` repairs it for every program
of this Python's environment, so that a plain ``import timm`` works: it puts a hook into ``site-packages``, started by
``nas_ext_torchvision.pth``, and takes it away again where the two builds match. ``make setup`` does that. What is
repaired, and how, is told in :mod:`nas_core.torchvision_hook`.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path

from nas_core import torchvision_hook
from nas_core.errors import NasExtError
from nas_core.files import os_errors, write_atomic

__all__ = [
    "apply_torchvision_fix",
    "cuda_mismatch",
    "environment_is_repaired",
    "fix_torchvision_on_import",
    "repair_environment",
]

_MODULE, _START = "_nas_ext_torchvision", "nas_ext_torchvision.pth"


def cuda_mismatch(package: str) -> bool:
    """Return whether a CUDA build of ``torchvision`` or ``torchaudio`` is installed beside a torch built without CUDA.

    Neither is imported.
    """
    torch, other = importlib.util.find_spec("torch"), importlib.util.find_spec(package)
    return torchvision_hook.is_cuda_build(other) and not torchvision_hook.is_cuda_build(torch)


def apply_torchvision_fix() -> bool:
    """Declare the missing operators if, and only if, the mismatch is there; call it before importing torchvision.

    Returns:
        Whether the fix is in force.
    """
    if not torchvision_hook.is_declared() and "torchvision" not in sys.modules and cuda_mismatch("torchvision"):
        torchvision_hook.declare()
    return torchvision_hook.is_declared()


def fix_torchvision_on_import() -> None:
    """Have the operators declared when torchvision is imported, if it ever is: until then neither torchvision nor
    torch is, which NNI's tuners, for whose start there is a time limit, have no need of."""
    torchvision_hook.install()


def repair_environment() -> bool:
    """Put the hook into this Python's environment if its torch and torchvision do not match, else remove it.

    Returns:
        Whether the environment has the hook now.

    Raises:
        NasExtError: ``site-packages`` cannot be changed.
    """
    if not cuda_mismatch("torchvision"):
        for path in reversed(_files()):
            with os_errors("remove", path):
                path.unlink(missing_ok=True)
        return False
    module, start = _files()
    write_atomic(module, Path(torchvision_hook.__file__).read_text("utf-8"))
    write_atomic(start, f"import {_MODULE}; {_MODULE}.install()\n")
    return True


def environment_is_repaired() -> bool:
    """Whether the hook of :func:`repair_environment` is in this Python's environment."""
    return all(path.is_file() for path in _files())


def _files() -> tuple[Path, Path]:
    """The hook, and the line that starts it with the interpreter and needs it."""
    folder = Path(sysconfig.get_path("purelib"))
    return folder / f"{_MODULE}.py", folder / _START


def main(argv: Sequence[str] | None = None) -> int:
    """The command ``python -m nas_core.torchvision_fix``; returns the exit code."""
    argparse.ArgumentParser(
        prog="python -m nas_core.torchvision_fix",
        description="Let every program of this environment import a CUDA build of torchvision beside a CPU build of"
        " torch; where the two match, remove what did so.",
    ).parse_args(argv)
    try:
        repaired = repair_environment()
    except NasExtError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(f"torchvision is repaired by {_files()[1]}" if repaired else "torchvision needs no repair here")
    return 0


if __name__ == "__main__":
    sys.exit(main())
