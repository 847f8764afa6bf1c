"""Without NNI: everything imports, and using what needs NNI says in one line how to get it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = """
import sys

class Blocked:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == "nni":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Blocked)
from nni_ext import *
from nni_ext.nas import predictors, spaces
from nas_core.errors import MissingHostError
from nas_core.space import get_space
for use in (
    lambda: PredictorProfiler(None, "x.safetensors"),
    lambda: PredictorEvaluator("x.safetensors"),
    lambda: as_model_space(get_space("hat_small")),
    lambda: spaces.ArchitectureSpace({}),
    lambda: predictors.reader_for(None),
):
    try:
        use()
    except MissingHostError as error:
        print(error)
"""


def test_what_is_missing_is_said_on_use() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", SCRIPT],
        cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 5, lines
    assert all(line.endswith("which is not installed: run pip install 'nas-ext[nni]'") for line in lines)


def test_importing_the_package_imports_no_host() -> None:
    script = "import sys, nni_ext.graphs; sys.exit('nni' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], cwd=Path(__file__).parents[2], timeout=240, check=False)
    assert done.returncode == 0
