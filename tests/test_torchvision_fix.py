"""The torchvision repair acts on one mismatch only: a CUDA torchvision beside a CPU torch."""

import importlib.util
import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest
import torch

from nas_core import torchvision_fix

ROOT = Path(__file__).parents[1]
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
cpu_torch = pytest.mark.skipif(torch.version.cuda is not None, reason="this torch is a CUDA build: nothing to repair")


def put_torchvision(folder, version):
    """A stand-in for torchvision that fails on import as the real one does."""
    (folder / "torchvision").mkdir(exist_ok=True)
    (folder / "torchvision" / "__init__.py").write_text(IMPORT)
    (folder / "torchvision" / "version.py").write_text(f"__version__ = '{version}'\n")


def python(script, *path, cwd=None, program=sys.executable):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    if path:
        environment["PYTHONPATH"] = os.pathsep.join(map(str, path))
    return subprocess.run(
        [program, *(["-c", script] if isinstance(script, str) else script)],
        env=environment, cwd=cwd, capture_output=True, text=True, timeout=200, check=False,
    )  # fmt: skip


def run(folder, version, script=SCRIPT):
    put_torchvision(folder, version)
    return python(script, folder, ROOT)


@cpu_torch
def test_cuda_build_beside_cpu_torch_is_repaired(tmp_path):
    done = run(tmp_path, "0.28.0+cu130")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["True", "True", "True"]


def test_matching_build_is_left_alone(tmp_path):
    done = run(tmp_path, "0.28.0+cpu")
    assert done.stdout.split() == ["False", "False", "False"]
    assert "operator torchvision::nms does not exist" in done.stderr


LAZY = """
import importlib.util, sys
from nas_core.torchvision_fix import fix_torchvision_on_import
fix_torchvision_on_import()
fix_torchvision_on_import()
importlib.util.find_spec("torchvision")
print("torch" in sys.modules)
before = len(sys.meta_path)
import torchvision
print(before - len(sys.meta_path))
"""


@cpu_torch
def test_repair_on_import_waits_for_torchvision(tmp_path):
    done = run(tmp_path, "0.28.0+cu130", LAZY)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["False", "1"]


@pytest.fixture
def environment(tmp_path):
    """Another environment that has this one's packages, and its ``site-packages``."""
    venv.create(tmp_path / "venv", with_pip=False)
    program = tmp_path / "venv" / "bin" / "python"
    packages = Path(python("import sysconfig; print(sysconfig.get_path('purelib'))", program=program).stdout.strip())
    (packages / "these.pth").write_text("\n".join({sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}))
    return program, packages


def hook(packages):
    return sorted(path.name for path in packages.iterdir() if "nas_ext_torchvision" in path.name)


REPAIR = ("-m", "nas_core.torchvision_fix")


@cpu_torch
def test_environment_is_repaired_for_every_program_and_restored(environment, tmp_path):
    program, packages = environment
    put_torchvision(packages, "0.28.0+cu130")
    assert "torchvision::nms does not exist" in python("import torchvision", program=program, cwd=tmp_path).stderr
    for _ in range(2):
        done = python(REPAIR, ROOT, program=program)
        assert done.returncode == 0 and "nas_ext_torchvision.pth" in done.stdout, done.stderr
    assert hook(packages) == ["_nas_ext_torchvision.py", "nas_ext_torchvision.pth"]
    done = python("import torchvision; print('imported')", program=program, cwd=tmp_path)
    assert (done.stdout, done.stderr, done.returncode) == ("imported\n", "", 0)
    start = "import sys; print([n for n in ('torch', 'nas_core', 're', 'typing') if n in sys.modules])"
    assert python(("-I", "-c", start), program=program).stdout == python(("-S", "-c", start), program=program).stdout

    put_torchvision(packages, "0.28.0+cpu")  # replaced by a build that matches: not touched, though the hook is there
    look = "import torch, sys; before = list(sys.meta_path)\ntry: import torchvision\nexcept RuntimeError: pass\n"
    done = python(f"{look}print(hasattr(torch.ops.torchvision, 'nms'), before == sys.meta_path)", program=program)
    assert done.stdout.split() == ["False", "True"]
    assert "needs no repair" in python(REPAIR, ROOT, program=program).stdout
    assert hook(packages) == []


@cpu_torch
def test_our_packages_and_the_hook_of_the_environment_do_not_disturb_each_other(environment):
    program, packages = environment
    put_torchvision(packages, "0.28.0+cu130")
    python(REPAIR, ROOT, program=program)
    count = "print(sum(hasattr(finder, 'repairs_torchvision') for finder in sys.meta_path))"
    done = python(f"{LAZY}{count}", ROOT, program=program)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["False", "1", "0"]


@pytest.mark.timm
@pytest.mark.skipif(not importlib.util.find_spec("timm"), reason="timm is not installed")
@pytest.mark.skipif(not torchvision_fix.cuda_mismatch("torchvision"), reason="torch and torchvision match here")
def test_plain_timm_in_a_repaired_environment(environment, tmp_path):
    program, _ = environment
    plain = "import timm; timm.create_model('resnet18'); print('made')"
    assert python(REPAIR, ROOT, program=program).returncode == 0
    done = python(plain, program=program, cwd=tmp_path)
    assert done.stdout == "made\n", done.stderr


@pytest.mark.timm
def test_plain_timm_in_the_environment_of_make_setup(tmp_path):
    if not (Path(sys.prefix) / ".nas-ext" / "ready").exists():
        pytest.skip("this Python's environment was not made by 'make setup'")
    done = python("import timm; timm.create_model('resnet18'); print('made')", cwd=tmp_path)
    assert done.stdout == "made\n", done.stderr


def test_read_only_environment_is_one_line(monkeypatch, capsys, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setattr(torchvision_fix, "cuda_mismatch", lambda package: True)
    monkeypatch.setattr(torchvision_fix.sysconfig, "get_path", lambda name: str(tmp_path / "file" / "packages"))
    assert torchvision_fix.main([]) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: cannot write") and error.count("\n") == 1
