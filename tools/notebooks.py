"""Run the notebooks of the site: ``python -m tools.notebooks [NAME ..]``; ``--check`` writes nothing.

Outputs are kept without metadata. ``QUICK=1`` in the environment runs them at a smaller size.
"""

import argparse
import os
import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "notebooks"


def main() -> None:
    names = sorted(path.stem for path in FOLDER.glob("*.ipynb"))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "names", nargs="*", choices=[*names, []], metavar="NAME", help=f"{', '.join(names)}; default: all"
    )
    parser.add_argument("--check", action="store_true", help="write nothing")
    args = parser.parse_args()
    paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "PYTHONWARNINGS": "ignore:IProgress not found",  # warning of tqdm without widgets
    }
    for name in args.names or names:
        path = FOLDER / f"{name}.ipynb"
        notebook = nbformat.read(path, 4)
        with tempfile.TemporaryDirectory(prefix="notebook-") as folder:
            resources = {"metadata": {"path": folder}}
            client = NotebookClient(notebook, timeout=900, kernel_name="python3", resources=resources)
            client.execute(env=environment)
        for cell in notebook.cells:
            cell.metadata = {}
            for output in cell.get("outputs", []):
                if output.get("name") == "stderr":
                    sys.exit(f"{path.name} prints a warning: {output.text[:300]}")
                if "data" in output:
                    output.metadata = {}
        if not args.check:
            nbformat.write(notebook, path)
        print(f"{path.relative_to(ROOT)}: {len(notebook.cells)} cells")


if __name__ == "__main__":
    main()
