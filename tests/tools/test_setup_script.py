"""tools/setup.sh: torchvision comes from torch's package index where one is given, a torchaudio that does not import is
removed; nothing is installed here."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
INDEX = "https://example.org/whl/cpu"
# Writes down how it was called, and says which builds of torch and torchvision are installed.
PYTHON = """#!/usr/bin/env bash
echo "${PIP_INDEX_URL:-default} $*" >>calls
case "$*" in
    *get_path*) echo "$PWD" ;;
    *"m.version"*" torch") echo cpu ;;
    *"m.version"*" torchvision") echo "$FAKE_TORCHVISION" ;;
    *"import torchaudio") [ -z "$BROKEN_TORCHAUDIO" ] ;;
esac
"""


@pytest.fixture
def folder(tmp_path):
    """A clone with an environment whose Python only writes down what it is asked for."""
    if not shutil.which("bash"):
        pytest.skip("no bash here")
    for name in ("pyproject.toml", "setup.py", "tools/setup.sh", "nas_core/startup.py", "nas_core/__init__.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    python = tmp_path / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(PYTHON)
    python.chmod(0o755)
    (tmp_path / "Python.h").touch()
    return tmp_path


def setup(folder, index="", torchvision="", broken_torchaudio=""):
    """Run the script; returns its calls of pip and of our own modules."""
    (folder / "calls").write_text("")
    environment = {
        "PATH": os.environ["PATH"], "CXX": "true", "TORCH_INDEX": index, "FAKE_TORCHVISION": torchvision,
        "BROKEN_TORCHAUDIO": broken_torchaudio,
    }  # fmt: skip
    done = subprocess.run(
        ["bash", "tools/setup.sh"], cwd=folder, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    calls = (folder / "calls").read_text().splitlines()
    return [call.replace("--disable-pip-version-check --no-input ", "") for call in calls if " -m " in call]


def installs_of(calls, package):
    return [call.split()[0] for call in calls if " install " in call and f" {package}" in call]


def test_torch_and_torchvision_come_from_one_index(folder):
    calls = setup(folder, INDEX)
    assert installs_of(calls, "torch==") == [INDEX]
    assert installs_of(calls, "torchvision>=") == [INDEX]
    assert any("uninstall -y torchvision" in call for call in calls)  # the one that PyPI gave an earlier setup
    assert [call for call in setup(folder) if " install " in call] == []  # the index was given once, and stays


def test_matching_torchvision_stays(folder):
    assert installs_of(setup(folder, INDEX, torchvision="cpu"), "torchvision>=") == []


def test_without_an_index_torchvision_stays(folder):
    calls = setup(folder)
    assert installs_of(calls, "torch==") == ["default"] and installs_of(calls, "torchvision>=") == []
    assert [call for call in setup(folder) if " install " in call] == []
    assert installs_of(setup(folder, INDEX), "torchvision>=") == [INDEX]  # an index given later is used


def test_changed_start_up_file_is_installed_again(folder):
    setup(folder)
    with open(folder / "nas_core" / "startup.py", "a", encoding="utf-8") as file:
        file.write("# changed\n")
    assert any(" -e ." in call for call in setup(folder))


def test_torchaudio_that_does_not_import_is_removed_after_the_check(folder):
    calls = setup(folder, broken_torchaudio="1")
    removed, checked = (next(i for i, call in enumerate(calls) if call.endswith(end)) for end in
                         ("pip uninstall -y torchaudio", "pip check"))  # fmt: skip
    assert checked < removed


def test_torchaudio_that_imports_stays(folder):
    assert not any("torchaudio" in call for call in setup(folder))
