"""A script of a timm checkout with our models registered."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
SCRIPT = """
import sys
import timm
import beside
print(timm.is_model("mformer_cifar10"), __name__, sys.argv[1:], beside.VALUE)
"""


def launch(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "timm_ext.launch", *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)


def test_a_script_sees_our_models_and_its_neighbours(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    (tmp_path / "beside.py").write_text("VALUE = 7\n")
    done = launch(str(tmp_path / "train.py"), "--model", "mformer_cifar10")
    assert done.stdout.strip() == "True __main__ ['--model', 'mformer_cifar10'] 7", done.stderr


def test_an_absent_script_is_explained_in_one_line(tmp_path: Path) -> None:
    done = launch(str(tmp_path / "train.py"))
    assert done.returncode == 2
    assert done.stderr.startswith("no file ")
    assert len(done.stderr.splitlines()) == 1
