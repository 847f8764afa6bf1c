"""A warm program behaves as a new process does; pages and commands of tests rely on it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.toys import ROOT
from tests.warm import wait_until_warm, warm


@pytest.fixture
def environment() -> dict[str, str]:
    programs = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    variables = warm({**os.environ, "PATH": programs, "PYTHONPATH": str(ROOT)})
    wait_until_warm()
    return variables


def bash(code: str, environment: Mapping[str, str], folder: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-c", code], env=environment, cwd=folder, capture_output=True, text=True, timeout=60, check=False
    )


def test_it_has_libraries_imported_and_the_arguments_folder_variables_and_streams_of_its_command(
    environment: dict[str, str], tmp_path: Path
) -> None:
    code = "import sys; print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    imported = set(bash(f'python -c "{code}"', environment).stdout.split())
    assert {"torch", "numpy", "scipy"} <= imported
    assert not imported & {"nas_core", "fairseq_ext", "timm_ext", "nni_ext", "tests", "fairseq", "fairseq_cli", "nni"}
    (tmp_path / "module.py").write_text("VALUE = 7\n")
    program = "import module, os, sys; print(sys.argv, os.getcwd(), os.environ['MINE'], module.VALUE, input())"
    (tmp_path / "program.py").write_text(f"{program}\nprint(__name__, __file__, file=sys.stderr)\n")
    mine = {**environment, "MINE": "set"}
    for command, first in (("program.py", "program.py"), ("-m program", str(tmp_path / "program.py"))):
        done = bash(f"echo in | python {command} 'a b' c", mine, tmp_path)
        assert done.stdout == f"{[first, 'a b', 'c']} {tmp_path} set 7 in\n", done.stderr
        assert done.stderr == f"__main__ {first}\n"


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("pass", 0),
        ("raise SystemExit(3)", 3),
        ("raise SystemExit('message')", 1),
        ("1 / 0", 1),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL),
    ],
)
def test_it_ends_as_a_new_process_does(environment: dict[str, str], code: str, status: int) -> None:
    begin = "import atexit; atexit.register(print, 'at its end')"
    forked = bash(f'exec python -c "{begin}\n{code}"', environment)
    new = bash(f'exec {sys.executable} -c "{begin}\n{code}"', environment)
    assert forked.returncode == new.returncode == status and forked.stdout == new.stdout
    assert forked.stderr.splitlines()[-1:] == new.stderr.splitlines()[-1:]


@pytest.mark.parametrize(("sent", "printed"), [(signal.SIGTERM, "asked to end"), (signal.SIGKILL, "")])
def test_signals_reach_it(environment: dict[str, str], tmp_path: Path, sent: int, printed: str) -> None:
    (tmp_path / "waits.py").write_text(
        "import os, signal, sys, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit('asked to end'))\n"
        "print(os.getpid(), flush=True)\n"
        "for _ in range(1000): time.sleep(0.1)\n"  # a signal just before a sleep is handled after it
    )
    program = [str(Path(environment["PATH"].split(os.pathsep)[0]) / "python"), str(tmp_path / "waits.py")]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(program, env=environment, **pipes) as client:  # type: ignore[call-overload]
        process = int(client.stdout.readline())
        assert process != client.pid
        client.send_signal(sent)
        assert printed in client.communicate(timeout=60)[1]
        assert client.returncode == (1 if printed else -sent)
    end = time.monotonic() + 60
    while Path(f"/proc/{process}").exists():
        assert time.monotonic() < end, "the program goes on"
        time.sleep(0.05)
