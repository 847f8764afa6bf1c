"""One process at a time, whatever becomes of the one before."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from nas_core.errors import ConfigError
from nas_core.locks import file_lock, is_locked

HOLDER = """
import sys, time
from nas_core.locks import file_lock
with file_lock(sys.argv[1], "works", "do something else"):
    print("held", flush=True)
    sys.stdin.read()
"""


def holder(path: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None and process.stdout.readline() == "held\n"
    return process


def test_the_second_process_is_told_who_is_there(tmp_path: Path) -> None:
    lock = tmp_path / "new" / "file.lock"
    other = holder(lock)
    message = rf"process {other.pid} on \S+ works; wait for it to end, or do something else"
    with pytest.raises(ConfigError, match=message), file_lock(lock, "works", "do something else"):
        pass
    assert lock.exists(), "it is the other's"
    other.communicate()
    assert other.returncode == 0 and not lock.exists()
    with file_lock(lock, "works", "do something else"):
        assert lock.read_text() == f"process {os.getpid()} on {os.uname().nodename}"
        with pytest.raises(ConfigError), file_lock(lock, "works", "do something else"):
            pass
    assert not lock.exists()


def test_a_killed_process_holds_nobody_up(tmp_path: Path) -> None:
    other = holder(tmp_path / "file.lock")
    other.send_signal(signal.SIGKILL)
    other.wait()
    assert (tmp_path / "file.lock").exists()
    with file_lock(tmp_path / "file.lock", "works", "do something else"):
        pass


def test_many_processes_one_after_another(tmp_path: Path) -> None:
    """Each adds one to a number as soon as it gets the lock, which is removed in between: none is lost."""
    program = """
import sys, time
from pathlib import Path
from nas_core.errors import ConfigError
from nas_core.locks import file_lock
number = Path(sys.argv[1])
for _ in range(30):
    while True:
        try:
            with file_lock(number.with_suffix(".lock"), "counts", "wait"):
                before = int(number.read_text())
                number.write_text(str(before + 1))
            break
        except ConfigError:
            time.sleep(0.001)
"""
    (tmp_path / "number.txt").write_text("0")
    processes = [subprocess.Popen([sys.executable, "-c", program, str(tmp_path / "number.txt")]) for _ in range(3)]
    assert [process.wait() for process in processes] == [0, 0, 0]
    assert (tmp_path / "number.txt").read_text() == "90"


def test_others_see_who_holds_it(tmp_path: Path) -> None:
    lock = tmp_path / "file.lock"
    assert is_locked(lock) is False
    other = holder(lock)
    assert is_locked(lock) is True
    other.kill()
    other.wait()
    assert lock.exists() and is_locked(lock) is False
