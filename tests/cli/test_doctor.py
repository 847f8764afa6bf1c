"""`nas-ext doctor`: hosts, devices and plug-ins, whatever their import does; errors of commands in one line."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import metadata
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from nas_core import cli
from nas_core.cli import doctor
from nas_core.errors import DataError
from tests.toys import plug_in

ROOT = Path(__file__).parents[2]


def nas_ext(folder: Path, *arguments: str) -> dict[str, str]:
    """Run the command in a process that finds the packages in a folder first; return its rows by name."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)])}
    code = "import sys; from nas_core.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", code, *arguments]
    output = subprocess.check_output(command, env=environment, cwd=folder, text=True, timeout=240)
    return rows_of(output)


def rows_of(output: str) -> dict[str, str]:
    rows, name = {}, ""
    for line in output.splitlines():
        name = line[:12].strip() or name
        rows[name] = f"{rows.get(name, '')} {line[12:].strip()}".strip()
    return rows


def test_the_extra_of_each_host_exists() -> None:
    assert {host.name for host in doctor.HOSTS} <= set(metadata("nas-ext").get_all("Provides-Extra", []))


def test_hosts_that_fail_in_every_way(tmp_path: Path) -> None:
    sources = {
        "timm": "print('a greeting on import')",
        "fairseq": "raise ValueError('mutable default\\n  second line')",
        "naslib": "import sys; sys.exit(3)",
        "onnx": "import os; os._exit(7)",
        "onnxruntime": "",
    }
    for name, source in sources.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(source)
    rows = nas_ext(tmp_path, "doctor", "--import")
    assert torch.__version__ in rows["torch"] and "does not import" not in rows["timm"]
    assert "does not import: ValueError: mutable default" in rows["fairseq"] and "second" not in rows["fairseq"]
    assert "--no-build-isolation" in rows["fairseq"] and "does not import: SystemExit: 3" in rows["naslib"]
    assert "exit code 7" in rows["onnx"] and "-> pip install 'nas-ext[onnx]'" in rows["onnx"]


def test_a_hanging_import_is_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "hangs.py").write_text("import time; time.sleep(100)")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(doctor, "_TIMEOUT_S", 2)  # private: nobody waits two minutes
    assert doctor.probe("import_host", "hangs") == (None, ["its import did not end within 2 s"])


def test_unfitting_versions_are_seen_without_an_import(tmp_path: Path) -> None:
    """torch for the CPU next to torchaudio and torchvision for CUDA, and others of wrong versions."""
    versions = {"torch": "2.13.0+cpu", "torchaudio": "2.11.0", "torchvision": "0.27.0", "timm": "1.0.31", "nni": "3.0",
                "setuptools": "82.0"}  # fmt: skip
    for name, version in versions.items():
        info = tmp_path / f"{name}-{version}.dist-info"
        info.mkdir()
        needs = "Requires-Dist: torch==2.12.0\n" if name == "torchvision" else ""
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needs}")
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(f"open('imported', 'a').write('{name} ')")
        build = version if name == "torch" else f"{version}+cu130"
        (tmp_path / name / "version.py").write_text(f"__version__ = '{build}'\n")
    rows = nas_ext(tmp_path, "doctor")
    assert not (tmp_path / "imported").exists() and "doctor --import" in rows["imports"]
    assert "a CUDA build next to a CPU torch" in rows["torchaudio"] and "-> pip uninstall" in rows["torchaudio"]
    assert "torchvision needs torch==2.12.0, but 2.13.0+cpu is installed" in rows["timm"]
    assert "repaired on import" in rows["timm"]
    assert "needs setuptools<81,>=65.5, but 82.0 is installed" in rows["nni"]
    (tmp_path / "torch-2.13.0+cpu.dist-info" / "METADATA").write_text("Name: torch\nVersion: 2.13.0\n")
    nas_ext(tmp_path, "doctor")  # it may have an accelerator
    assert (tmp_path / "imported").read_text() == "torch "


def test_cuda_devices_with_their_precisions(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second of them was made before bfloat16."""
    sizes = [("H200", 9, 0, 150 * 2**30), ("T4", 7, 5, 15 * 2**30)]
    devices = [SimpleNamespace(name=n, major=a, minor=b, total_memory=m) for n, a, b, m in sizes]
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
    monkeypatch.setattr("torch.cuda.get_device_properties", lambda index: devices[index])
    monkeypatch.setattr("torch.cuda.get_device_capability", lambda d: (devices[d.index].major, devices[d.index].minor))
    monkeypatch.setattr("torch.cuda.get_device_name", lambda d: devices[d.index].name)
    monkeypatch.setattr("nas_core.device.usable_device", lambda device: None)
    described = [
        "cuda:0 (H200, 150 GiB, compute capability 9.0): fp32, tf32, bf16, fp16",
        "cuda:1 (T4, 15 GiB, compute capability 7.5): fp32, fp16",
    ]
    assert [doctor.accelerators()[place] for place in (0, 1)] == described


@pytest.fixture
def only_those_of_the_test(monkeypatch: pytest.MonkeyPatch) -> None:
    there = set(doctor.installed_plug_ins())
    result = doctor.installed_plug_ins
    monkeypatch.setattr(doctor, "installed_plug_ins", lambda: [p for p in result() if p not in there])
    monkeypatch.setattr(doctor, "HOSTS", ())


@pytest.mark.usefixtures("only_those_of_the_test")
def test_every_defect_of_a_plug_in_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    modules = tmp_path / "modules"
    modules.mkdir()
    (modules / "its_import_raises.py").write_text("raise ValueError('mutable\\nsecond')", encoding="utf-8")
    monkeypatch.syspath_prepend(modules)
    errors = {
        ("hosts", "mixers", "examples.plugins.network_family:ADAPTER"): ": usable",
        (
            "strategies",
            "raises",
            "its_import_raises:X",
        ): "cannot be imported: ValueError: mutable; repair or uninstall its package",
        ("strategys", "climbing", "examples.plugins.strategy:HillClimbing"): "unknown group of entry points",
        ("hosts", "odd", "tests.cli.test_main:ODD"): "part of 'odd' (broken_command:app) cannot be imported: No module",
    }
    for number, (group, *entry) in enumerate(errors):
        plug_in(tmp_path / str(number), monkeypatch, f"nas_ext.{group}", *entry)
    assert cli.main(["doctor", "--plug-ins"]) == 0
    output = capsys.readouterr().out
    assert len(output.splitlines()) == 2 * len(errors) - 1
    for (group, name, _), error in errors.items():
        row = output.partition(f"{group}: {name},")[2].partition("\nplug-in")[0]
        assert error in row, name
    assert cli.main(["doctor"]) == 0
    assert ": usable" not in capsys.readouterr().out, "listed, but not imported"


def test_user_dir_is_found_without_importing_it(tmp_path: Path) -> None:
    (tmp_path / "fairseq_ext").mkdir()
    (tmp_path / "fairseq_ext" / "__init__.py").write_text("raise RuntimeError('imported')")
    code = "import sys; from nas_core.cli import main; sys.exit(main(['lab', 'user-dir']))"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])}
    output = subprocess.check_output([sys.executable, "-c", code], env=environment, cwd=tmp_path, text=True)
    assert output == f"{tmp_path / 'fairseq_ext'}\n"


def test_version_and_help_start_without_torch() -> None:
    code = "import sys; from nas_core.cli import main; main(['--version']); main([]); sys.exit('torch' in sys.modules)"
    output = subprocess.check_output([sys.executable, "-c", code], cwd=ROOT, text=True)
    assert output.startswith("nas-ext 0.1.0\n") and "doctor" in output


@pytest.mark.parametrize(
    ("error", "message", "code"),
    [
        (DataError("corpus is\nempty: give another"), "corpus is empty: give another", 2),
        (PermissionError(13, "Permission denied", "/some/file"), "/some/file: Permission denied; check", 2),
        (OSError(28, "No space left on device"), "No space left on device; check", 2),
    ],
)
def test_errors_are_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: Any, message: str, code: int
) -> None:
    def fail(imports: bool) -> Iterator[Any]:
        raise error

    monkeypatch.setattr(doctor, "rows", fail)
    assert cli.main(["doctor"]) == code
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"nas-ext: error: {message}")
    assert cli.main(["doctor", "--debug"]) == code
    errors = capsys.readouterr().err
    assert "Traceback" in errors and errors.splitlines()[-1] == line


def test_an_interruption_has_no_traceback(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupt(imports: bool) -> Iterator[Any]:
        raise KeyboardInterrupt

    monkeypatch.setattr(doctor, "rows", interrupt)
    assert cli.main(["doctor"]) == 130
    assert "Traceback" not in capsys.readouterr().err
