"""What ``make test-cuda`` and ``make bench-cuda`` start, tried on the CPU."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch

import benchmarks.on_cuda
from benchmarks.__main__ import modules
from benchmarks.on_cuda import RUNS, Run
from nas_core.files import read_json
from tests.toys import ROOT
from tools import plain_machine

TESTS = """
import pytest
import torch

def test_of_any_device(device):
    assert torch.ones(2, device=device).sum() == 2

def test_that_fails(device):
    assert device == "tpu"

def test_that_needs_more(second_device):
    pytest.importorskip("no_such_module_anywhere", reason="no_such_module_anywhere is not installed")
"""


def run(*arguments: str, python: str = sys.executable) -> subprocess.CompletedProcess[str]:
    return subprocess.run([python, "-m", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)


def test_outcomes_are_counted(tmp_path: Path) -> None:
    file, out = tmp_path / "test_it_on_device.py", tmp_path / "tests.json"
    # Fixtures of the root folder's conftest.py reach files below it alone.
    file.write_text(f"from tests.devices import device, second_device  # noqa\n{TESTS}", encoding="utf-8")
    done = run("tests.on_cuda", "--device", "cpu", "--out", str(out), str(file))
    assert done.returncode == 1, done.stdout + done.stderr
    found = read_json(out)
    assert found["passed"] == 1 and [name.rpartition("::")[2] for name in found["failed"]] == ["test_that_fails[cpu]"]
    assert found["skipped"] == {"no_such_module_anywhere is not installed": 1}
    assert found["machine"]["torch"] == str(torch.__version__)
    assert found["measured"]["command"].startswith("make test-cuda ARGS='--device cpu")
    assert f"torch {torch.__version__}" in done.stdout


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device here")
@pytest.mark.parametrize("module", ["tests.on_cuda", "benchmarks.on_cuda"])
def test_no_device_is_said_in_one_line(module: str) -> None:
    done = run(module)
    assert done.returncode == 2 and not done.stdout
    assert "finds no CUDA device; name one that has it: make ... CUDA_PYTHON=" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_python_without_torch_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plain_machine.importlib.util, "find_spec", lambda name: None)
    assert "has no module torch; install it, or name one that has it" in str(plain_machine.no_device("cuda"))
    assert plain_machine.missing() == dict(plain_machine.ADDS)


def test_every_run_is_a_benchmark_that_takes_a_device() -> None:
    known = modules()
    assert set(RUNS) <= set(known)
    for name in RUNS:
        text = (ROOT / Path(*known[name].split("."))).with_suffix(".py").read_text(encoding="utf-8")
        assert '"--device"' in text and '"--out"' in text, name


class Ended:
    """Stands for the processes of benchmarks."""

    def __init__(self, code: int | None) -> None:
        self.code, self.commands = code, []

    def __call__(self, command: list[str], timeout: float, **_: object) -> subprocess.CompletedProcess[str]:
        self.commands.append(command)
        if self.code is None:
            raise subprocess.TimeoutExpired(command, timeout)
        return subprocess.CompletedProcess(command, self.code)


@pytest.mark.parametrize(
    ("code", "said", "exit_code"),
    [(0, "done in", 0), (1, "failed with exit code 1", 1), (None, "stopped after 590 s; the same command goes on", 1)],
)
def test_how_runs_end(
    code: int | None,
    said: str,
    exit_code: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    ended = Ended(code)
    monkeypatch.setattr(benchmarks.on_cuda.subprocess, "run", ended)
    assert benchmarks.on_cuda.main(["linear_attention", "--device", "cpu", "--out", str(tmp_path)]) == exit_code
    assert f"linear_attention: {said}" in capsys.readouterr().out
    assert ended.commands[0][3:] == ["--device", "cpu", "--out", str(tmp_path / "linear_attention.json")]


def test_what_is_missing_is_skipped_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(RUNS, "image_update", Run(modules=("no_such_module",), files=(tmp_path / "table.npz",)))
    assert benchmarks.on_cuda.main(["image_update", "--device", "cpu", "--out", str(tmp_path)]) == 0
    told = capsys.readouterr().out
    assert "image_update: skipped, no module no_such_module; " in told and "table.npz is absent" in told
