"""The torchvision repair acts on one mismatch only: a CUDA torchvision beside a CPU torch."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

SCRIPT = """
import torch
from nas_core.torchvision_fix import apply_torchvision_fix
print(apply_torchvision_fix(), apply_torchvision_fix(), hasattr(torch.ops.torchvision, "nms"))
import torchvision
"""
# What the compiled package does on import: it registers shape functions for operators its library should have declared.
IMPORT = """
import torch
for name in ("nms", "qnms"):
    torch.library.register_fake(f"torchvision::{name}")(lambda dets, scores, iou_threshold: dets)
"""


def run(folder, version, script=SCRIPT):
    (folder / "torchvision").mkdir()
    (folder / "torchvision" / "__init__.py").write_text(IMPORT)
    (folder / "torchvision" / "version.py").write_text(f"__version__ = '{version}'\n")
    root = Path(__file__).parents[1]
    environment = {**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{root}"}
    return subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, timeout=120, check=False
    )


@pytest.mark.skipif(torch.version.cuda is not None, reason="this torch is a CUDA build: the mismatch cannot arise")
def test_cuda_build_beside_cpu_torch_is_repaired(tmp_path):
    done = run(tmp_path, "0.28.0+cu130")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["True", "True", "True"]


def test_matching_build_is_left_alone(tmp_path):
    done = run(tmp_path, "0.28.0+cpu")
    assert done.stdout.split() == ["False", "False", "False"]
    assert "operator torchvision::nms does not exist" in done.stderr


LAZY = """
import sys
from nas_core.torchvision_fix import fix_torchvision_on_import
fix_torchvision_on_import()
fix_torchvision_on_import()
print("torch" in sys.modules)
before = len(sys.meta_path)
import torchvision
print(before - len(sys.meta_path))
"""


@pytest.mark.skipif(torch.version.cuda is not None, reason="this torch is a CUDA build: the mismatch cannot arise")
def test_repair_on_import_waits_for_torchvision(tmp_path):
    done = run(tmp_path, "0.28.0+cu130", LAZY)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["False", "1"]
