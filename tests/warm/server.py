"""A Python with the heavy libraries imported that forks for each program it is asked for; ``programs.py`` starts it.

A program is a process of its own: its arguments, folder, environment, search path and streams are those of whoever
asked, and nothing of the project is imported before it begins. What is imported are libraries alone, and of them none
that sets up logging or reads the environment for good, as fairseq and NNI do.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import json
import logging
import os
import runpy
import select
import shutil
import signal
import socket
import sys
from importlib.util import find_spec
from typing import Any

LIBRARIES = (
    "torch", "torch._dynamo", "torch.onnx", "numpy", "scipy.stats", "scipy.optimize",
    "scipy.sparse.linalg", "pandas", "sklearn.metrics", "lightgbm", "matplotlib.pyplot", "plotly.graph_objects",
    "torchvision", "timm", "onnx", "omegaconf", "hydra", "sacrebleu", "typer",
    "rich.progress", "yaml", "safetensors.torch", "pytorch_lightning", "optuna", "IPython", "ipykernel.kernelapp",
)  # fmt: skip
"""What is imported before the first program, as far as it is installed."""
READ_AT_IMPORT = ("PYTHON", "OMP_", "MKL_", "KMP_", "GOMP_", "LD_", "MPL", "NUMEXPR", "OPENBLAS", "LC_", "LANG")
"""How variables begin that Python and libraries read when they begin; where they differ, a program is started anew."""
FIRST = dict(os.environ)
"""The variables of this process before libraries set some of their own."""
ENDS: list[int] = []
"""The exit code of a program that has run."""


def main(address: str, lifeline: int) -> None:
    """Serve until `lifeline` closes, which the process that started this one holds open; then remove the folder of
    the socket, for who was killed did not."""
    for name in LIBRARIES:
        if find_spec(name.partition(".")[0]) is not None:
            importlib.import_module(name)
    for name in [name for name in sys.modules if name.partition(".")[0] == "nas_core"]:
        del sys.modules[name]  # the start-up hook uses it to import torchvision
    threads = len(os.listdir("/proc/self/task"))
    assert threads == 1, f"a process of {threads} threads cannot be forked safely"
    assert not logging.getLogger().handlers, "a library has set up logging"
    gc.collect()
    gc.freeze()
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(f"{address}.new")
    listener.listen(64)
    os.rename(f"{address}.new", address)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for attendants
    while lifeline not in select.select([listener, lifeline], [], [])[0]:
        asker, _ = listener.accept()
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            listener.close()
            return attend(asker, lifeline)
        asker.close()
    shutil.rmtree(os.path.dirname(address), ignore_errors=True)


def attend(asker: socket.socket, lifeline: int) -> None:
    """Fork the program that is asked for, tell its process and its end; when who asked ends, or who started the
    server, the program does."""
    size, streams, _, _ = socket.recv_fds(asker, 16, 3)
    text, part = b"", size
    while part and len(text) < int(size):
        part = asker.recv(int(size) - len(text))
        text += part
    if not part:  # who asked has ended
        os._exit(1)  # private: a fork must not run what its server left to the end
    request = json.loads(text)
    if read_at_import(request["environment"]) != read_at_import(FIRST):
        with contextlib.suppress(OSError):  # who asked has ended
            asker.sendall(b"cold\n")
        os._exit(0)  # private: a fork must not run what its server left to the end
    program = os.fork()
    if program == 0:
        asker.close()
        os.close(lifeline)
        for to, stream in enumerate(streams):
            os.dup2(stream, to)
            os.close(stream)
        return become(request)
    for stream in (0, 1, 2, *streams):  # a pipe ends with the program
        os.close(stream)
    shared = 0
    with contextlib.suppress(OSError):  # a group of another session: signals come through who asked
        os.setpgid(program, request["group"])
        shared = 1
    ended = os.pidfd_open(program)
    with contextlib.suppress(OSError):  # who asked has ended
        asker.sendall(f"{program} {shared}\n".encode())
    if ended not in select.select([ended, asker, lifeline], [], [])[0]:
        os.kill(program, signal.SIGKILL)
    _, status = os.waitpid(program, 0)
    with contextlib.suppress(OSError):  # who asked has ended
        asker.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())
    os._exit(0)  # private: a fork must not run what its server left to the end


def read_at_import(environment: dict[str, str]) -> dict[str, str]:
    """The variables that must be those of this process, without those that libraries set in a program that asks."""
    set_here = {name: value for name, value in os.environ.items() if name not in FIRST}
    return {
        name: value
        for name, value in environment.items()
        if name.startswith(READ_AT_IMPORT) and name != "PYTHONPATH" and set_here.get(name) != value
    }


def become(request: dict[str, Any]) -> None:
    """What Python does with a command line; an exception ends the program as it always does."""
    os.umask(request["umask"])
    os.chdir(request["folder"])
    by_libraries = {name: value for name, value in os.environ.items() if name not in FIRST}
    os.environ.clear()
    os.environ.update({**by_libraries, **request["environment"]})
    importlib.invalidate_caches()
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed()  # else every program would draw the same
    sys.executable = request["python"]  # what it starts is warm as well
    try:
        run(*request["arguments"])
    except SystemExit as exit_:
        if exit_.code is None or isinstance(exit_.code, int):
            ENDS.append(exit_.code or 0)
        raise
    except Exception:
        ENDS.append(1)
        raise
    ENDS.append(0)


def run(safe: str, kind: str, name: str, *arguments: str) -> None:
    """Run what ``python SAFE KIND NAME ARGUMENTS`` runs; SAFE is ``-P`` or nothing."""
    first = {"-c": "", "-m": os.getcwd()}.get(kind, os.path.dirname(os.path.realpath(name)))
    paths = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    sys.path[:] = [*([] if safe else [first]), *map(os.path.abspath, paths), *sys.path]
    sys.orig_argv = [sys.executable, *filter(None, (safe, kind)), name, *arguments]
    sys.argv = [kind or name, *arguments]
    if kind == "-m":
        runpy.run_module(name, run_name="__main__", alter_sys=True)
    elif kind == "-c":
        sys.modules["__main__"] = type(sys)("__main__")
        exec(compile(name, "<string>", "exec"), vars(sys.modules["__main__"]))
    else:
        runpy.run_path(name, run_name="__main__")


def leave() -> None:
    """End a program after all that it registered: to tear down the libraries takes longer than many a program."""
    if ENDS:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(ENDS[-1])  # private: a fork must not run what its server left to the end


if __name__ == "__main__":
    del sys.path[0]
    atexit.register(leave)  # what is registered first is run last
    main(sys.argv[1], int(sys.argv[2]))
