"""Worker processes of this machine, each with its own device.

A worker is a new interpreter, since CUDA cannot be used in a fork. It opens its data once and does not import the
program's main module. Items and results are JSON lines through pipes.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import queue
import selectors
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import IO, Any

from nas_core.errors import ConfigError, NasExtError
from nas_core.jobs import Failure, Opener
from nas_core.machine import python_environment

LOOK_S = 1.0
"""Seconds between checks of silent workers"""
END_S = 10.0
"""Seconds until an unresponsive worker is killed"""
_PROGRAM = "from nas_core.workers import work; work()"


class WorkerPool:
    """Pool of workers, one for each mapping of arguments, which start with the first items.

    Args:
        opener: importable function, called once in each worker; it returns the function from an item to its result.
        arguments: keyword arguments of the opener for each worker, as plain data.
        names: names of the workers in messages, such as their devices.
    """

    def __init__(self, opener: Opener, arguments: Sequence[Mapping[str, Any]], names: Sequence[str]) -> None:
        if len(arguments) != len(names) or not names:
            raise ConfigError(f"{len(arguments)} workers and {len(names)} names were given; expected as many, and one")
        where = {"module": _module_of(opener), "function": opener.__qualname__}
        self._places = [
            _Place(name, {**where, "arguments": dict(own)}) for name, own in zip(names, arguments, strict=True)
        ]

    def __enter__(self) -> WorkerPool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End all workers; the next items start new ones."""
        for place in self._places:
            place.close_input()
        for place in self._places:
            place.end()

    def map(self, items: Sequence[Any]) -> Iterator[Mapping[str, Any] | Failure]:
        """Yield the result of each item in order, as soon as possible.

        A worker that dies is replaced and its item repeated. An item fails if its work raises an exception or two
        workers die over it.

        Raises:
            NasExtError: a worker raised one or could not start; all workers are ended.
        """
        done: dict[int, Mapping[str, Any] | Failure] = {}
        left = list(reversed(range(len(items))))
        yielded = 0
        try:
            while yielded < len(items):
                for place in self._places:
                    if left and place.item is None:
                        place.give(left.pop(), items)
                while yielded in done:
                    yielded += 1
                    yield done.pop(yielded - 1)
                if yielded < len(items):
                    self._wait(done, items)
        except BaseException as error:
            # A caller may leave after the last result.
            if not isinstance(error, GeneratorExit) or any(place.item is not None for place in self._places):
                self.close()
            raise

    def _wait(self, done: dict[int, Mapping[str, Any] | Failure], items: Sequence[Any]) -> None:
        busy = [place for place in self._places if place.item is not None]
        with selectors.DefaultSelector() as selector:
            for place in busy:
                selector.register(place.results, selectors.EVENT_READ)
            ready = {key.fd for key, _ in selector.select(LOOK_S)}
        for place in busy:
            index, outcome = place.item, None
            if place.results in ready:
                outcome = place.read(items)
            elif place.process.poll() is not None:
                outcome = place.lost(items)
            if outcome is not None and index is not None:
                done[index] = outcome


def _module_of(opener: Opener) -> str:
    name = str(opener.__module__)
    if name == "__main__":
        spec = getattr(sys.modules["__main__"], "__spec__", None)
        name = "" if spec is None else str(spec.name)
    if not name or "." in opener.__qualname__:
        raise ConfigError(f"workers cannot import {opener.__qualname__}; expected a function of a module of its own")
    return name


@dataclass
class _Place:
    """A worker and its replacements."""

    name: str
    opening: Mapping[str, Any]
    item: int | None = None
    losses: int = 0
    """Workers that died over this item or at startup"""
    _process: subprocess.Popen[bytes] | None = None
    _began: bool = False
    _unread: bytes = b""

    @property
    def process(self) -> subprocess.Popen[bytes]:
        assert self._process is not None
        return self._process

    @property
    def results(self) -> int:
        assert self.process.stdout is not None
        return self.process.stdout.fileno()

    def give(self, index: int, items: Sequence[Any]) -> None:
        self.item = index
        if self._process is None:
            self._process, self._began, self._unread = _start(), False, b""
            self._write(self.opening)
        self._write({"item": items[index]})

    def read(self, items: Sequence[Any]) -> Mapping[str, Any] | Failure | None:
        content = os.read(self.results, 1 << 20)
        if not content:
            return self.lost(items)
        *lines, self._unread = (self._unread + content).split(b"\n")
        outcome: Mapping[str, Any] | Failure | None = None
        for answer in map(json.loads, lines):
            if "rejected" in answer:
                raise NasExtError(answer["rejected"])
            if "broken" in answer:
                raise NasExtError(f"the worker on {self.name} could not begin: {answer['broken']}")
            if "began" in answer:
                self._began = True
            else:
                self.item, self.losses = None, 0
                outcome = Failure(answer["failed"]) if "failed" in answer else dict(answer["result"])
        return outcome

    def lost(self, items: Sequence[Any]) -> Failure | None:
        """Replace a dead worker; return a failure if it was the second for this item."""
        began, index = self._began, self.item
        assert index is not None
        how = self.end()
        self.losses += 1
        if self.losses < 2:
            self.give(index, items)
            return None
        self.losses = 0
        if not began:
            raise NasExtError(f"two workers on {self.name} ended before they could begin: the last one {how}")
        return Failure(f"two workers were lost over it: the one on {self.name} {how}")

    def close_input(self) -> None:
        if self._process is not None and self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()

    def end(self) -> str:
        if self._process is None:
            return "not there"
        self.close_input()
        process, self._process, self.item = self._process, None, None
        try:
            code = process.wait(END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            code = process.wait()
        if process.stdout is not None:
            process.stdout.close()
        return f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"

    def _write(self, record: Mapping[str, Any]) -> None:
        assert self.process.stdin is not None
        with contextlib.suppress(OSError):  # a dead worker is noticed when its results are read
            self.process.stdin.write(json.dumps(record).encode() + b"\n")


def _start() -> subprocess.Popen[bytes]:
    """Start a worker in its own session, out of reach of Ctrl-C."""
    threads = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    return subprocess.Popen(
        [sys.executable, "-P", "-c", _PROGRAM],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**python_environment(), **threads},
        bufsize=0,
        start_new_session=True,
    )


# -- the program of a worker -------------------------------------------------------------------------------------------


def work() -> None:
    """Run a worker: call the opener from the first line of stdin, then compute items until stdin ends."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(os.fdopen(os.dup(0), "rb"), lines), daemon=True).start()
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)  # reads of the work end at once
    os.close(empty)
    opening = json.loads(lines.get())
    try:
        opener = getattr(importlib.import_module(opening["module"]), opening["function"])
        compute = opener(**opening["arguments"])
    except NasExtError as error:
        return _end(answers, {"rejected": str(error)})
    except Exception as error:
        return _end(answers, {"broken": Failure.of(error).reason})
    _answer(answers, {"began": True})
    while True:
        item = json.loads(lines.get())["item"]
        try:
            _answer(answers, {"result": dict(compute(item))})
        except NasExtError as error:
            return _end(answers, {"rejected": str(error)})
        except BrokenPipeError:
            os._exit(1)
        except Exception as error:
            if _device_is_lost():
                print(f"the device of this process is lost: {Failure.of(error).reason}", file=sys.stderr, flush=True)
                os._exit(1)  # another process does the item
            _answer(answers, {"failed": Failure.of(error).reason})


def _device_is_lost() -> bool:
    """Return whether every CUDA call of this process fails, as after an illegal access."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_initialized():
        return False
    try:
        torch.cuda.synchronize()
    except RuntimeError:
        return True
    return False


def _listen(source: IO[bytes], lines: queue.SimpleQueue[bytes]) -> None:
    for line in source:
        lines.put(line)
    os._exit(0)


def _answer(answers: IO[bytes], record: dict[str, Any]) -> None:
    answers.write(json.dumps(record, default=float).encode() + b"\n")  # numbers of numpy and torch are numbers
    answers.flush()


def _end(answers: IO[bytes], record: dict[str, Any]) -> None:
    """Send a result and wait: a process that exits counts as lost."""
    _answer(answers, record)
    sys.stderr.flush()
    threading.Event().wait()
