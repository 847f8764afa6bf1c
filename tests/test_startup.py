"""What every Python of an environment with nas-ext does when a host is imported, torchvision's repair included."""

import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).parents[1]
SCRIPT = """
import torch
from nas_core.torchvision_fix import repair
print(repair(), repair(), hasattr(torch.ops.torchvision, "nms"))
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


def python(script, *path, cwd=None, program=sys.executable, variables=None):
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "OMP_WAIT"))}
    environment |= variables or {}
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


LAZY = """
import importlib.util, sys
from nas_core import startup
startup.install()
startup.install()
importlib.util.find_spec("torchvision")
print("torch" in sys.modules, sum(hasattr(finder, "of_nas_ext") for finder in sys.meta_path))
import torchvision
"""


def built(folder, kind):
    """Return the files that a wheel of this kind puts into ``site-packages`` next to the packages."""
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE", "nas_core/__init__.py", "nas_core/startup.py"):
        (folder / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    done = python(f"import setuptools.build_meta as b; b.build_{kind}('.')", cwd=folder)
    assert done.returncode == 0, done.stderr
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
        return {name: wheel.read(name) for name in ("_nas_ext_start.py", "nas_ext.pth")}


@pytest.fixture(scope="module")
def start_up_file(tmp_path_factory):
    return built(tmp_path_factory.mktemp("tree"), "wheel")


@pytest.fixture
def environment(tmp_path, start_up_file):
    """Another environment that has this one's packages and the start-up file, and its ``site-packages``."""
    venv.create(tmp_path / "venv", with_pip=False)
    program = tmp_path / "venv" / "bin" / "python"
    packages = Path(python("import sysconfig; print(sysconfig.get_path('purelib'))", program=program).stdout.strip())
    (packages / "these.pth").write_text("\n".join({sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}))
    for name, content in start_up_file.items():
        (packages / name).write_bytes(content)
    return program, packages


@cpu_torch
def test_every_program_imports_torchvision_and_python_starts_as_lightly(environment, tmp_path):
    program, packages = environment
    put_torchvision(packages, "0.28.0+cu130")
    done = python("import torchvision; print('imported')", ROOT, program=program, cwd=tmp_path)
    assert (done.stdout, done.stderr, done.returncode) == ("imported\n", "", 0)
    done = python(LAZY, ROOT, program=program)
    assert done.stdout.split() == ["False", "1"], done.stderr
    start = "import sys; print([n for n in ('torch', 'nas_core', 're', 'typing') if n in sys.modules])"
    assert python(("-I", "-c", start), program=program).stdout == python(("-S", "-c", start), program=program).stdout

    put_torchvision(packages, "0.28.0+cpu")  # a build that matches is not touched
    look = "import torch\ntry: import torchvision\nexcept RuntimeError: pass\n"
    done = python(f"{look}print(hasattr(torch.ops.torchvision, 'nms'))", ROOT, program=program)
    assert done.stdout == "False\n"


def put_fairseq(folder, plug_in):
    """A stand-in for fairseq and its commands, with a plug-in of this content."""
    for name, content in (("fairseq", ""), ("fairseq_cli", ""), ("fairseq_ext", plug_in)):
        (folder / name).mkdir()
        (folder / name / "__init__.py").write_text(content)


@pytest.mark.parametrize(
    ("variables", "policy"),
    [({}, "PASSIVE"), ({"OMP_WAIT_POLICY": "ACTIVE"}, "ACTIVE"), ({"GOMP_SPINCOUNT": "100"}, "None")],
)
def test_commands_of_fairseq_find_the_plug_in_and_wait_without_spinning(environment, tmp_path, variables, policy):
    program, _ = environment
    put_fairseq(tmp_path, "import fairseq, os; print('registered', os.environ.get('OMP_WAIT_POLICY'))")
    done = python("import fairseq_cli, fairseq", tmp_path, program=program, cwd=tmp_path, variables=variables)
    assert (done.stdout, done.stderr) == (f"registered {policy}\n", "")
    done = python("import fairseq", tmp_path, program=program, cwd=tmp_path)
    assert done.stdout == "", "another program is left alone"


@pytest.mark.timm
@pytest.mark.skipif(not importlib.util.find_spec("timm"), reason="timm is not installed")
@pytest.mark.parametrize(("program", "policy"), [("timm_ext.train", "PASSIVE"), ("other", "None")])
def test_trainings_of_timm_wait_without_spinning(program, policy):
    code = "import os, timm_ext; print(os.environ.get('OMP_WAIT_POLICY'))"
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("OMP_WAIT", "GOMP"))}
    done = subprocess.run(
        [sys.executable, "-c", code, program], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == policy


PROBE = """
import fairseq_cli.train, sys
from fairseq import utils
from fairseq.data import data_utils
from fairseq.models import ARCH_MODEL_REGISTRY
from argparse import Namespace
utils.import_user_module(Namespace(user_dir=(sys.argv[2:] or [None])[0]))
print("mos_transformer" in ARCH_MODEL_REGISTRY, hasattr(data_utils.batch_by_size, "of_fairseq"))
"""


@pytest.mark.fairseq
@pytest.mark.skipif(not importlib.util.find_spec("fairseq"), reason="fairseq is not installed")
@pytest.mark.parametrize("named", [True, False])
def test_fairseq_train_knows_the_architectures_with_and_without_the_user_dir(environment, tmp_path, named):
    """fairseq's own models are trained on the batches that fairseq makes, unless the plug-in is named."""
    program, _ = environment
    (tmp_path / "fairseq-train").write_text(PROBE)
    options = ["--user-dir", str(ROOT / "fairseq_ext")] if named else []
    done = python([str(tmp_path / "fairseq-train"), *options], ROOT, program=program, cwd=tmp_path)
    assert done.stdout.splitlines()[-1].split() == ["True", str(named)], done.stderr
