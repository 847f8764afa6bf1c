"""``python -m timm_ext.launch PATH/train.py ..``: a script of a timm checkout with our models registered.

timm finds models by what was imported, and its trainer is a script outside the package. Under it a supernet draws one
random subnet per forward pass (SPOS); the sandwich rule needs :mod:`timm_ext.train`. On several devices torch's
wrapper expects every parameter in every update, which subnets do not give: train supernets on one.
"""

from __future__ import annotations

import runpy
import sys
from collections.abc import Sequence
from pathlib import Path

from nas_core.errors import DataError, NasExtError

__all__ = ["launch", "main"]


def launch(script: str, arguments: Sequence[str]) -> None:
    """Run the script as if it had been called, its folder first in the search path.

    Raises:
        DataError: no such script.
    """
    path = Path(script)
    if not path.is_file():
        raise DataError(f"no file {script}; give train.py or validate.py of a timm checkout")
    import timm_ext  # noqa: F401  registers the models

    sys.argv = [script, *arguments]
    sys.path.insert(0, str(path.resolve().parent))
    runpy.run_path(script, run_name="__main__")


def main() -> int:
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        print("usage: python -m timm_ext.launch PATH/train.py [options of that script]")
        return 0 if len(sys.argv) > 1 else 2
    try:
        launch(sys.argv[1], sys.argv[2:])
    except NasExtError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
