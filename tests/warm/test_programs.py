"""How programs that start at once are set up: what fails is told, and paths and names of any kind will do."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.toys import ROOT


def python(code: str, here: Path, program: str = sys.executable, **more: str) -> subprocess.CompletedProcess[str]:
    """Run `code` with `programs`, the module of that name, whose server is the file ``server.py`` in `here`."""
    begin = f"from pathlib import Path\nfrom tests.warm import programs\nprograms.HERE = Path({str(here)!r})\n"
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **more}
    environment.pop("NAS_EXT_COLD", None)
    return subprocess.run(
        [program, "-c", begin + code], env=environment, capture_output=True, text=True, timeout=120, check=False
    )


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """The stand-in beside a server that fails."""
    shutil.copy(ROOT / "tests" / "warm" / "client.py", tmp_path)
    (tmp_path / "server.py").write_text("import sys\nsys.exit('it says why')\n")
    return tmp_path


def test_a_server_that_fails_is_told_at_once_with_what_it_said(here: Path) -> None:
    done = python("programs.wait_until_warm()", here)
    assert done.returncode == 1
    assert "AssertionError: the server of warm programs has ended:\nit says why\n" in done.stderr


def test_a_long_folder_of_temporary_files_has_no_socket(here: Path) -> None:
    long = here / ("long" * 30)
    long.mkdir()
    code = "from socket import *\nplace = programs.warm({'PATH': ''})[programs.PLACE]\n"
    done = python(f"{code}socket(AF_UNIX).bind(place)\nprint(place)", here, TMPDIR=str(long))
    assert done.stdout.startswith("/tmp/warm-"), done.stderr


@pytest.mark.parametrize("name", ["python", "python3", f"python3.{sys.version_info.minor}"])
def test_each_python_is_that_of_its_environment_in_a_folder_with_a_blank(here: Path, name: str) -> None:
    made = here / "my folder"
    (made / "bin").mkdir(parents=True)
    shutil.copy(Path(sys.prefix) / "pyvenv.cfg", made)
    (made / "lib").symlink_to(Path(sys.prefix) / "lib")
    for program in {name, "python", "other"}:
        (made / "bin" / program).symlink_to(Path(sys.executable).resolve())
    code = (
        "import os, subprocess\n"
        "made = programs.warm(dict(os.environ, PATH='/usr/bin:/bin'))\n"
        f"for one in ({name!r}, 'other'):\n"
        "    subprocess.run(['bash', '-c', one + ' -c \"import sys; print(sys.prefix)\"'], env=made, check=True)\n"
    )
    done = python(code, here, str(made / "bin" / "python"))
    assert done.stdout == f"{made}\n" * 2, done.stderr
