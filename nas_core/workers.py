"""Work in processes of this machine that stay: each opens what it works with once, on a device of its own.

A worker is a fresh interpreter, as CUDA cannot be used in a fork. It is started with the search path of this process
and imports nothing of the program that this one runs, so that programs need no guard against being imported. Items go
to it and results come back as JSON lines through pipes; nothing is pickled, no file is written and no port opened.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from nas_core.errors import ConfigError, NasExtError
from nas_core.jobs import Failure, Opener
from nas_core.machine import python_environment

LOOK_S = 1.0
"""Between two looks whether the workers live, where nothing comes from them: one that ends closes its pipe, unless a
process that it has started holds that open."""
END_S = 10.0
"""How long a worker that was told to end is waited for before it is killed."""
_PROGRAM = "from nas_core.worker import main; main()"


class WorkerPool:
    """One worker for each list of arguments; they are started with the first items and stay until the pool is closed.

    Used as a context manager, no worker is left behind. One whose pool was never closed ends with this process.

    Args:
        opener: a function of a module that can be imported, called once in each worker: arguments -> what gives the
            plain result of one plain item.
        arguments: plain keyword arguments of it, for each worker its own.
        names: what the workers are called in messages, such as their devices.
    """

    def __init__(self, opener: Opener, arguments: Sequence[Mapping[str, Any]], names: Sequence[str]) -> None:
        if len(arguments) != len(names) or not names:
            raise ConfigError(f"{len(arguments)} workers and {len(names)} names were given; expected as many, and one")
        where = {"module": _module_of(opener), "function": opener.__qualname__}
        self._places = [
            _Place(name, {**where, "arguments": dict(given)}) for name, given in zip(names, arguments, strict=True)
        ]

    def __enter__(self) -> WorkerPool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End all workers, whatever they are doing; they are started anew with the next items."""
        for place in self._places:
            place.tell_to_end()
        for place in self._places:
            place.end()

    def map(self, items: Sequence[Any]) -> Iterator[Mapping[str, Any] | Failure]:
        """The result of each item, in order, as soon as those before it are there.

        A worker that dies is replaced once, and begins with the item it died over; that item fails if the second one
        dies too. An item whose work raises an exception has failed.

        Raises:
            NasExtError: a worker raised one, or could not begin; all workers are ended.
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
            # Who has all results need not ask whether there are more.
            if not isinstance(error, GeneratorExit) or any(place.item is not None for place in self._places):
                self.close()
            raise

    def _wait(self, done: dict[int, Mapping[str, Any] | Failure], items: Sequence[Any]) -> None:
        """Take what comes next from any worker."""
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
    """By which a worker imports it, also of a program that was started by ``python -m``.

    Raises:
        ConfigError: it is of a program that was started by its file, or defined inside a function or a class.
    """
    name = str(opener.__module__)
    if name == "__main__":
        spec = getattr(sys.modules["__main__"], "__spec__", None)
        name = "" if spec is None else str(spec.name)
    if not name or "." in opener.__qualname__:
        raise ConfigError(f"workers cannot import {opener.__qualname__}; expected a function of a module of its own")
    return name


@dataclass
class _Place:
    """Where a worker is, or will be; the one that is there may be the second."""

    name: str
    opening: Mapping[str, Any]
    item: int | None = None
    """Place of the item it works on."""
    losses: int = 0
    """Workers that died over this item, or while they began."""
    _process: subprocess.Popen[bytes] | None = None
    _began: bool = False
    _unread: bytes = b""

    @property
    def process(self) -> subprocess.Popen[bytes]:
        assert self._process is not None
        return self._process

    @property
    def results(self) -> int:
        """The pipe that its answers come through."""
        assert self.process.stdout is not None
        return self.process.stdout.fileno()

    def give(self, index: int, items: Sequence[Any]) -> None:
        self.item = index
        if self._process is None:
            self._process, self._began, self._unread = _started(), False, b""
            self._write(self.opening)
        self._write({"item": items[index]})

    def read(self, items: Sequence[Any]) -> Mapping[str, Any] | Failure | None:
        """What became of the item, after something has come through the pipe; None while that is open."""
        content = os.read(self.results, 1 << 20)
        if not content:
            return self.lost(items)
        *lines, self._unread = (self._unread + content).split(b"\n")
        outcome: Mapping[str, Any] | Failure | None = None
        for answer in map(json.loads, lines):
            if "refused" in answer:
                raise NasExtError(answer["refused"])
            if "broken" in answer:
                raise NasExtError(f"the worker on {self.name} could not begin: {answer['broken']}")
            if "began" in answer:
                self._began = True
            else:
                self.item, self.losses = None, 0
                outcome = Failure(answer["failed"]) if "failed" in answer else dict(answer["result"])
        return outcome

    def lost(self, items: Sequence[Any]) -> Failure | None:
        """Replace the worker, which has died; or the failure of its item, if it was the second."""
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

    def tell_to_end(self) -> None:
        """A worker whose pipe is closed ends at once."""
        if self._process is not None and self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()

    def end(self) -> str:
        """End the worker, if there is one; how it ended."""
        if self._process is None:
            return "not there"
        self.tell_to_end()
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
        """A worker that is dead does not take it, which is seen when its results are read."""
        assert self.process.stdin is not None
        with contextlib.suppress(OSError):
            self.process.stdin.write(json.dumps(record).encode() + b"\n")


def _started() -> subprocess.Popen[bytes]:
    """A worker in a session of its own, so that Ctrl-C in a terminal comes to this process alone, which ends it."""
    threads = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    return subprocess.Popen(
        [sys.executable, "-P", "-c", _PROGRAM],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**python_environment(), **threads},
        bufsize=0,
        start_new_session=True,
    )
