"""A warm program is to who starts it what a new one is; pages and commands of tests rest on it."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.toys import ROOT
from tests.warm import COLD, THREADS, wait_until_warm, warm

IS_WARM = "import sys; print('runpy' in sys.modules and 'torch' in sys.modules)"


@pytest.fixture
def environment() -> dict[str, str]:
    programs = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    made = warm({**os.environ, "PATH": programs, "PYTHONPATH": str(ROOT)})
    wait_until_warm()
    return made


def bash(code: str, environment: Mapping[str, str], folder: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-c", code], env=environment, cwd=folder, capture_output=True, text=True, timeout=60, check=False
    )


def test_a_program_has_libraries_imported_and_nothing_of_the_project(environment: dict[str, str]) -> None:
    code = "import sys; print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    here = set(bash(f'python -c "{code}"', environment).stdout.split())
    assert {"torch", "numpy", "scipy"} <= here
    ours = {"nas_core", "fairseq_ext", "timm_ext", "nni_ext", "naslib_ext", "optuna_ext", "examples", "tests"}
    assert not here & (ours | {"fairseq", "fairseq_cli", "nni", "naslib"})


def test_what_a_library_sets_in_the_process_of_tests_does_not_make_programs_cold(
    environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KMP_SET_BY_A_LIBRARY", "1")
    assert "KMP_SET_BY_A_LIBRARY" not in warm({**os.environ, "PATH": os.environ["PATH"]})
    asked = warm({**os.environ, "PATH": environment["PATH"], "KMP_SET_BY_A_LIBRARY": "2"})
    assert asked["KMP_SET_BY_A_LIBRARY"] == "2", "who asks for a value of its own has it"
    assert bash(f'python -c "{IS_WARM}"', warm({**os.environ, "PATH": environment["PATH"]})).stdout == "True\n"


def test_it_has_the_arguments_folder_variables_paths_and_streams_of_who_asks(
    environment: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "beside.py").write_text("VALUE = 7\n")
    program = "import beside, os, sys; print(sys.argv, os.getcwd(), os.environ['MINE'], beside.VALUE, input())"
    (tmp_path / "program.py").write_text(f"{program}\nprint(__name__, __file__, file=sys.stderr)\n")
    mine = {**environment, "MINE": "set"}
    for command, first in (("program.py", "program.py"), ("-m program", str(tmp_path / "program.py"))):
        done = bash(f"echo in | python {command} 'a b' c", mine, tmp_path)
        assert done.stdout == f"{[first, 'a b', 'c']} {tmp_path} set 7 in\n", done.stderr
        assert done.stderr == f"__main__ {first}\n"
    done = bash(f'echo in | python -c "{program}" "a b"', mine, tmp_path)
    assert done.stdout == f"{['-c', 'a b']} {tmp_path} set 7 in\n"
    assert bash("python -c 'import nas_core; print(nas_core.__file__)'", environment).stdout.startswith(str(ROOT))


@pytest.mark.parametrize(
    ("code", "ends"),
    [
        ("pass", 0),
        ("raise SystemExit(3)", 3),
        ("raise SystemExit('said')", 1),
        ("1 / 0", 1),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL),
        ("import os; os._exit(9)", 9),
    ],
)
def test_it_ends_as_it_would_alone(environment: dict[str, str], code: str, ends: int) -> None:
    begin = "import atexit; atexit.register(print, 'at its end')"
    warm_one = bash(f'exec python -c "{begin}\n{code}"', environment)
    alone = bash(f'exec {sys.executable} -c "{begin}\n{code}"', environment)
    assert warm_one.returncode == alone.returncode == ends
    assert warm_one.stdout == alone.stdout
    assert warm_one.stderr.splitlines()[-1:] == alone.stderr.splitlines()[-1:]


@pytest.mark.parametrize(("sent", "says"), [(signal.SIGTERM, "asked to end"), (signal.SIGKILL, "")])
def test_what_ends_who_asked_ends_it(environment: dict[str, str], tmp_path: Path, sent: int, says: str) -> None:
    (tmp_path / "waits.py").write_text(
        "import os, signal, sys, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit('asked to end'))\n"
        "print(os.getpid(), flush=True)\ntime.sleep(100)\n"
    )
    program = [str(Path(environment["PATH"].split(os.pathsep)[0]) / "python"), str(tmp_path / "waits.py")]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(program, env=environment, **pipes) as asker:  # type: ignore[call-overload]
        process = int(asker.stdout.readline())
        assert process != asker.pid
        asker.send_signal(sent)
        assert says in asker.communicate(timeout=60)[1]
        assert asker.returncode == (1 if says else -sent)
    end = time.monotonic() + 60
    while Path(f"/proc/{process}").exists():
        assert time.monotonic() < end, "the program goes on"
        time.sleep(0.05)


def test_what_it_starts_with_its_python_is_warm_as_well(environment: dict[str, str]) -> None:
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-P', '-c', {IS_WARM!r}])"
    assert bash(f"python -c {shlex.quote(code)}", environment).stdout == "True\n"


def test_two_programs_draw_other_numbers(environment: dict[str, str]) -> None:
    code = "import numpy, random; print(numpy.random.random(), random.random())"
    first, second = (bash(f"python -c '{code}'", environment).stdout.split() for _ in range(2))
    assert first[0] != second[0] and first[1] != second[1]


def test_it_is_started_anew_where_a_fork_would_not_do(
    environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    command = f'python -c "{IS_WARM}"'
    assert bash(command, environment).stdout == "True\n"
    assert bash(command, {**environment, "PYTHONHASHSEED": "1"}).stdout == "False\n"
    assert bash(command, {**environment, "NAS_EXT_WARM": "/no/socket"}).stdout == "False\n"
    assert bash(f'python -X utf8 -c "{IS_WARM}"', environment).stdout == "False\n"
    monkeypatch.setenv(COLD, "1")
    assert warm({"PATH": "/bin"}) == {"PATH": "/bin", **THREADS}
