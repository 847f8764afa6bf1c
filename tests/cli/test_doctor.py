"""`nas-ext doctor` reports whatever a host does on import; the command line itself never shows a traceback."""

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from nas_core import cli
from nas_core.cli import doctor
from nas_core.errors import DataError

ROOT = Path(__file__).parents[2]


def nas_ext(*arguments, path=(), cwd=None):
    """Run the command in a process of its own, with folders put in front of its search path."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*map(str, path), str(ROOT)])}
    code = "import sys; from nas_core.cli import main; sys.exit(main())"
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env=environment,
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


@pytest.fixture
def fake_hosts(tmp_path):
    """Hosts that stand for every way an import can end; those not named here are absent or real."""
    sources = {
        "timm": "__version__ = '9.9'; print('a greeting on import')",
        "fairseq": "raise ValueError('mutable default\\n  second line')",
        "naslib": "import sys; sys.exit(3)",
        "onnx": "import os; os._exit(7)",
        "onnxruntime": "",
    }
    for name, source in sources.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(source)
    return tmp_path


def test_json_of_hosts_that_fail_in_every_way(fake_hosts):
    done = nas_ext("doctor", "--import", "--json", path=[fake_hosts], cwd=fake_hosts)
    assert (done.returncode, done.stderr) == (0, "")
    findings = json.loads(done.stdout)
    assert findings["python"] == ".".join(map(str, sys.version_info[:3]))
    assert findings["torch"]["version"] == torch.__version__
    assert findings["torch"]["importable"] is True
    kinds = {device["kind"] for device in findings["accelerators"]}
    assert ("cuda" in kinds) == torch.cuda.is_available()
    hosts = findings["hosts"]
    assert list(hosts) == ["fairseq", "timm", "nni", "naslib", "optuna", "onnx"]
    assert hosts["timm"]["importable"] is True
    assert hosts["timm"]["install"] is None
    assert hosts["fairseq"]["installed"] is True
    assert hosts["fairseq"]["importable"] is False
    assert hosts["fairseq"]["problems"][0] == "does not import: ValueError: mutable default"
    assert "--no-build-isolation" in hosts["fairseq"]["install"]
    assert hosts["naslib"]["problems"][0] == "does not import: SystemExit: 3"
    assert "exit code 7" in hosts["onnx"]["problems"][0]
    assert hosts["onnx"]["install"] == "pip install 'nas-ext[onnx]'"
    table = doctor.findings_table(findings)
    lines = {line.split()[0]: line for line in table.splitlines()}
    assert "does not import: ValueError: mutable default" in lines["fairseq"]
    assert "does not import" not in lines["timm"]
    assert "-> pip install 'nas-ext[onnx]'" in table


@pytest.fixture
def packages(tmp_path):
    """Packages whose import is an error, beside metadata and version files: torch for the CPU, torchaudio for CUDA."""
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
    return tmp_path


def test_versions_that_do_not_fit_are_told_without_an_import(packages):
    done = nas_ext("doctor", path=[packages], cwd=packages)
    assert (done.returncode, done.stderr) == (0, "")
    assert not (packages / "imported").exists()
    lines = {line.split()[0]: line for line in done.stdout.splitlines()}
    assert "a CUDA build next to a CPU torch" in lines["torchaudio"]
    assert "-> pip uninstall torchaudio" in done.stdout
    assert "torchvision needs torch==2.12.0, but 2.13.0+cpu is installed" in lines["timm"]
    assert "repaired on import" in lines["timm"]
    assert "needs setuptools<81,>=65.5, but 82.0 is installed" in lines["nni"]
    assert "doctor --import" in lines["imports"]


def test_torch_that_may_have_an_accelerator_is_imported(packages):
    (packages / "torch-2.13.0+cpu.dist-info" / "METADATA").write_text("Name: torch\nVersion: 2.13.0\n")
    nas_ext("doctor", path=[packages], cwd=packages)
    assert (packages / "imported").read_text() == "torch "


def test_hanging_import_is_cut_off(tmp_path, monkeypatch):
    (tmp_path / "hangs").mkdir()
    (tmp_path / "hangs" / "__init__.py").write_text("import time; time.sleep(100)")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(doctor, "_TIMEOUT_S", 2)  # private: nobody waits two minutes
    assert "did not end within 2 s" in doctor.probe("import_host", [["hangs"]])[0]["error"]


def test_user_dir_is_found_without_importing_it(tmp_path):
    (tmp_path / "fairseq_ext").mkdir()
    (tmp_path / "fairseq_ext" / "__init__.py").write_text("raise RuntimeError('imported')")
    done = nas_ext("lab", "user-dir", path=[tmp_path], cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, f"{tmp_path / 'fairseq_ext'}\n")


def test_version_and_help_start_without_torch():
    code = "import sys; from nas_core.cli import main; main(['--version']); main([]); sys.exit('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("nas-ext 0.1.0\n")
    assert "doctor" in done.stdout


@pytest.mark.parametrize(
    ("error", "message", "code"),
    [
        (DataError("corpus is\nempty: give another"), "corpus is empty: give another", 2),
        (PermissionError(13, "Permission denied", "/some/file"), "/some/file: Permission denied; check", 2),
        (OSError(28, "No space left on device"), "No space left on device; check", 2),
    ],
)
def test_errors_are_one_line(monkeypatch, capsys, error, message, code):
    monkeypatch.setattr(doctor, "diagnose", lambda imports: (_ for _ in ()).throw(error))
    assert cli.main(["doctor"]) == code
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"nas-ext: error: {message}")
    for arguments in (["--debug", "doctor"], ["doctor", "--debug"]):
        assert cli.main(arguments) == code
        shown = capsys.readouterr().err
        assert "Traceback" in shown
        assert shown.splitlines()[-1] == line


def test_interruption(monkeypatch, capsys):
    def interrupt(imports):
        raise KeyboardInterrupt

    monkeypatch.setattr(doctor, "diagnose", interrupt)
    assert cli.main(["doctor"]) not in (0, 2)
    assert "Traceback" not in capsys.readouterr().err


def test_cuda_devices_say_what_they_are_and_compute_in(monkeypatch):
    """Two of them, of which the second was made before bfloat16."""
    sizes = [("H200", 9, 0, 150 * 2**30), ("T4", 7, 5, 15 * 2**30)]
    devices = [SimpleNamespace(name=n, major=a, minor=b, total_memory=m) for n, a, b, m in sizes]
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
    monkeypatch.setattr("torch.cuda.get_device_properties", lambda index: devices[index])
    monkeypatch.setattr("torch.cuda.get_device_capability", lambda d: (devices[d.index].major, devices[d.index].minor))
    monkeypatch.setattr("torch.cuda.get_device_name", lambda d: devices[d.index].name)
    asked = []
    monkeypatch.setattr(doctor, "_adds", lambda device: asked.append(device) or True)  # private: computes there
    found = doctor._accelerators()  # private: runs in a process of its own
    assert asked[:2] == ["cuda:0", "cuda:1"]
    assert found[0] == {
        "kind": "cuda",
        "name": "H200",
        "device": "cuda:0",
        "memory_gib": 150.0,
        "capability": "9.0",
        "precisions": ["fp32", "tf32", "bf16", "fp16"],
    }
    assert (found[1]["device"], found[1]["precisions"]) == ("cuda:1", ["fp32", "fp16"])
    usable = {"installed": True, "importable": True, "version": "1", "problems": [], "install": None}
    findings = {"nas_ext": "1", "python": "3", "platform": "x", "accelerators": found[:2]}
    packages = {"triton": "3.2", "onnxruntime-gpu": None}
    findings |= {"torch": usable, "torchaudio": usable}
    shown = doctor.findings_table({**findings, "cuda_packages": packages, "hosts": {}, "plug_ins": []})
    assert "cuda:0 (H200, 150 GiB, compute capability 9.0): fp32, tf32, bf16, fp16" in shown
    assert "triton 3.2, onnxruntime-gpu not installed" in shown
