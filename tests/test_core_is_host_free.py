"""`nas_core` knows no host: all of it imports where every host is blocked."""

import subprocess
import sys
from pathlib import Path

HOSTS = ("fairseq", "fairseq_cli", "timm", "nni", "naslib", "optuna", "onnx", "onnxruntime")
ADAPTERS = ("fairseq_ext", "timm_ext", "nni_ext", "naslib_ext", "optuna_ext")

SCRIPT = """
import importlib, pkgutil, sys, traceback
for name in sys.argv[1:]:
    sys.modules[name] = None
import nas_core
names = ["nas_core"]
names += [module.name for module in pkgutil.walk_packages(nas_core.__path__, "nas_core.", onerror=lambda name: None)]
failed = 0
for name in names:
    if name.endswith(".__main__"):
        continue
    try:
        importlib.import_module(name)
    except BaseException:
        failed += 1
        print("cannot import", name)
        traceback.print_exc(file=sys.stdout)
print(len(names), "modules,", failed, "failed")
sys.exit(failed > 0)
"""


def run(*blocked):
    return subprocess.run(
        [sys.executable, "-c", SCRIPT, *blocked],
        cwd=Path(__file__).parents[1],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


def test_every_module_of_the_core_imports_without_hosts():
    done = run(*HOSTS, *ADAPTERS)
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(done.stdout.splitlines()[-1].split()[0]) > 5


def test_a_module_that_needs_a_blocked_package_would_be_noticed():
    done = run("typer")
    assert done.returncode == 1
    assert "cannot import nas_core.cli" in done.stdout
