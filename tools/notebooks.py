"""Run the notebooks of the site and keep their outputs: ``python tools/notebooks.py [NAME ..]``.

Each is run from top to bottom in a folder of its own, and written back with what it printed and drew, without times,
counts of kernels and names of machines. ``--check`` writes nothing: it says whether a notebook runs, and whether the
outputs kept in the repository are those of its cells. ``QUICK=1`` in the environment runs them at a smaller size.
"""

from __future__ import annotations

import argparse
import getpass
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

from nas_core.errors import DataError, NasExtError
from nas_core.files import write_atomic

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "notebooks"
LARGEST_PICTURE = 60_000
"""Bytes."""
LONGEST_OUTPUT = 2_000
"""Characters that a cell may print."""
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def main() -> int:
    """0, or 1 with what is wrong in one line."""
    names = sorted(path.stem for path in FOLDER.glob("*.ipynb"))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"which ones, of {', '.join(names)}; default: all")
    parser.add_argument("--check", action="store_true", help="write nothing, compare")
    parser.add_argument("--timeout", type=float, default=900, help="seconds that a cell may take (default: 900)")
    given = parser.parse_args()
    try:
        for name in given.names or names:
            if name not in names:
                raise DataError(f"no notebook {name!r}; there are {', '.join(names)}")
            path = FOLDER / f"{name}.ipynb"
            made = cleaned(executed(path, given.timeout))
            problems = [*faults(made), *(differences(nbformat.read(path, 4), made) if given.check else [])]
            if problems:
                raise DataError(f"{path.relative_to(ROOT)}: {'; '.join(problems)}")
            if not given.check:
                write_atomic(path, nbformat.writes(made, indent=1) + "\n")
            print(f"{path.relative_to(ROOT)}: {len(made.cells)} cells, {path.stat().st_size / 1000:.0f} kB")
    except NasExtError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def executed(path: Path, timeout: float) -> Any:
    """The notebook after a run in an empty folder.

    Raises:
        DataError: a cell failed or took too long.
    """
    notebook = nbformat.read(path, 4)
    paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    programs = [str(Path(sys.executable).parent), os.environ["PATH"]]
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "PATH": os.pathsep.join(programs),
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "PYTHONWARNINGS": "ignore:IProgress not found",  # of tqdm in notebooks without widgets
    }
    with tempfile.TemporaryDirectory(prefix="notebook-") as folder:
        where = {"metadata": {"path": folder}}
        client = NotebookClient(notebook, timeout=timeout, startup_timeout=180, kernel_name="python3", resources=where)
        try:
            client.execute(env=environment)
        except (CellExecutionError, CellTimeoutError, DeadKernelError) as error:
            raise DataError(f"{path.name} failed: {_COLOURS.sub('', str(error))[-3000:]}") from None
    return notebook


def cleaned(notebook: Any) -> Any:
    """The notebook without what differs from run to run or tells of the machine."""
    notebook.metadata = nbformat.from_dict(
        {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        }
    )
    number = 0
    for cell in notebook.cells:
        cell.metadata = {}
        if cell.cell_type != "code":
            continue
        number += 1
        cell.execution_count = number
        cell.outputs = _joined(cell.outputs)
        for output in cell.outputs:
            if "execution_count" in output:
                output.execution_count = number
            if "data" in output:
                output.metadata = {}
                if "image/png" in output.data:
                    output.data = {"image/png": output.data["image/png"]}
    return notebook


def _joined(outputs: list[Any]) -> list[Any]:
    """What was printed in several pieces, as one."""
    found: list[Any] = []
    for output in outputs:
        if found and output.output_type == found[-1].output_type == "stream" and output.name == found[-1].name:
            found[-1].text += output.text
        else:
            found.append(output)
    return found


def faults(notebook: Any) -> list[str]:
    """What no kept notebook may hold."""
    found = []
    person = getpass.getuser()
    private = re.compile(rf"(?<![\w.~/])/(?:home|root|tmp|work|usr|opt|Users|{re.escape(person)})/|\b[A-Z]:\\")
    for number, cell in enumerate(notebook.cells, 1):
        for output in cell.get("outputs", []):
            text = output.get("text", "") or output.get("data", {}).get("text/plain", "")
            picture = output.get("data", {}).get("image/png", "")
            if output.get("name") == "stderr" or output.output_type == "error":
                found.append(f"cell {number} has an error or a warning in its outputs: {text[:300]!r}")
            if len(text) > LONGEST_OUTPUT:
                found.append(f"cell {number} prints {len(text)} characters; at most {LONGEST_OUTPUT} are kept")
            if len(picture) * 3 / 4 > LARGEST_PICTURE:
                found.append(f"the picture of cell {number} has {len(picture) * 3 // 4} bytes")
            if path := private.search(text):
                found.append(
                    f"cell {number} prints a path of this machine near {text[max(0, path.start() - 20) :][:80]!r}"
                )
    return found


def differences(kept: Any, made: Any) -> list[str]:
    """Cells whose kept outputs are of other kinds than those that a run makes."""
    found = list(faults(kept))
    for number, (old, new) in enumerate(zip(kept.cells, made.cells, strict=True), 1):
        kinds = [sorted(_kind(output) for output in cell.get("outputs", [])) for cell in (old, new)]
        if kinds[0] != kinds[1]:
            found.append(f"cell {number} keeps {kinds[0]}, a run makes {kinds[1]}; run tools/notebooks.py")
    return found


def _kind(output: Any) -> str:
    return "picture" if "image/png" in output.get("data", {}) else str(output.get("name", "result"))


if __name__ == "__main__":
    sys.exit(main())
