"""The server's attendants and the programs' stand-ins end when others do, however these end."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.toys import ROOT
from tests.warm import THREADS

CLIENT = ROOT / "tests" / "warm" / "client.py"
NO_LIBRARIES = "import sys; from tests.warm import server; server.LIBRARIES = (); server.main(sys.argv[1], {})"
WAITS = "import os, time; print(os.getpid(), flush=True); time.sleep(600)"


class Served(NamedTuple):
    address: Path
    process: subprocess.Popen[bytes]
    lifeline: int


def until(what: Callable[[], bool], says: str) -> None:
    end = time.monotonic() + 60
    while not what():
        assert time.monotonic() < end, says
        time.sleep(0.02)


def stand_in(address: Path, code: str) -> list[str]:
    """The command that runs Python's `code` by the server."""
    return ["env", f"NAS_EXT_WARM={address}", sys.executable, "-IS", str(CLIENT), "/programs/python", "-c", code]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Served]:
    """A server that imports nothing first."""
    address = tmp_path / "warm" / "socket"
    address.parent.mkdir()
    read, write = os.pipe()
    environment = {**os.environ, **THREADS, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", NO_LIBRARIES.format(read), str(address)]
    with subprocess.Popen(command, env=environment, pass_fds=[read]) as process:
        os.close(read)
        until(lambda: address.exists() or process.poll() is not None, "the server does not start")
        lifeline = os.dup(write)
        os.close(write)
        yield Served(address, process, lifeline)
        process.kill()


def test_programs_end_with_the_process_that_started_the_server(server: Served) -> None:
    with subprocess.Popen(
        stand_in(server.address, WAITS), env={**os.environ, **THREADS}, stdout=subprocess.PIPE, text=True
    ) as asker:
        assert asker.stdout is not None
        program = int(asker.stdout.readline())
        assert program != asker.pid, "it was started anew"
        os.close(server.lifeline)  # as the end of a process does, also by SIGKILL
        try:
            assert asker.wait(60) == -signal.SIGKILL
        finally:
            asker.kill()
    until(lambda: not Path(f"/proc/{program}").exists(), "the program goes on")
    assert server.process.wait(60) == 0
    assert not server.address.parent.exists()


@pytest.mark.parametrize("sent", [b"", b"%16d" % 10, b"%16d{" % 10])
def test_an_attendant_ends_with_who_asked_before_the_question_ends(server: Served, sent: bytes) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asker:
        asker.settimeout(60)
        asker.connect(str(server.address))
        if sent:
            socket.send_fds(asker, [sent], [0, 1, 2])
        asker.shutdown(socket.SHUT_WR)
        assert asker.recv(1) == b"", "closed by the attendant's end"
    os.close(server.lifeline)


def test_a_signal_for_a_program_that_has_just_ended_is_dropped(tmp_path: Path) -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(tmp_path / "socket"))
        listener.listen()
        listener.settimeout(60)
        with subprocess.Popen(stand_in(tmp_path / "socket", "pass"), stderr=subprocess.PIPE, text=True) as asker:
            attendant, _ = listener.accept()
            for stream in socket.recv_fds(attendant, 16, 3)[1]:
                os.close(stream)
            attendant.sendall(f"{ended.pid} 1\n".encode())
            until(lambda: caught(asker.pid, signal.SIGTERM), "the stand-in does not take signals")
            asker.send_signal(signal.SIGTERM)
            time.sleep(0.1)
            attendant.sendall(b"5\n")
            assert asker.communicate(timeout=60)[1] == ""
            assert asker.returncode == 5
            attendant.close()


def caught(process: int, one: signal.Signals) -> bool:
    """Whether a process has a handler of its own for a signal."""
    status = Path(f"/proc/{process}/status").read_text(encoding="utf-8")
    mask = next(line.split()[1] for line in status.splitlines() if line.startswith("SigCgt"))
    return bool(int(mask, 16) >> (one - 1) & 1)
