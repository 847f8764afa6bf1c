"""Worker processes on this machine, each with one device.

A worker is a new Python interpreter, since CUDA does not work after a fork. It loads its data once.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from nas_core.errors import NasExtError
from nas_core.jobs import Failure, Opener, open_or_raise


class WorkerPool:
    """Pool of worker processes, started by the first call of :meth:`map`.

    Args:
        opener: function as described in :data:`nas_core.jobs.Opener`.
        arguments: keyword arguments of ``opener`` for each worker.
        names: name of each worker in messages, such as its device.
    """

    def __init__(self, opener: Opener, arguments: Sequence[Mapping[str, Any]], names: Sequence[str]) -> None:
        self._workers = [
            _Worker(name, opener, worker_arguments) for name, worker_arguments in zip(names, arguments, strict=True)
        ]

    def __enter__(self) -> WorkerPool:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """End all workers. The next call of :meth:`map` starts new ones."""
        for worker in self._workers:
            worker.end()

    def map(self, items: Sequence[Any]) -> Iterator[Mapping[str, Any] | Failure]:
        """Yield the result of each item, in order.

        The item of a worker that dies is computed again by a new worker. An item is a ``Failure`` if its computation
        raises an exception, or if two workers die during it.

        Raises:
            NasExtError: a computation raises it, or a worker cannot load its data.
        """
        waiting = list(reversed(range(len(items))))
        idle = list(self._workers)
        running: dict[Future[Mapping[str, Any] | Failure], tuple[_Worker, int]] = {}
        outcomes: dict[int, Mapping[str, Any] | Failure] = {}
        lost: set[int] = set()
        try:
            for index in range(len(items)):
                while True:
                    while waiting and idle:
                        worker, number = idle.pop(0), waiting.pop()
                        running[worker.submit(items[number])] = worker, number
                    if index in outcomes:
                        break
                    for future in wait(running, return_when=FIRST_COMPLETED).done:
                        worker, number = running.pop(future)
                        idle.append(worker)
                        try:
                            outcomes[number] = future.result()
                        except BrokenProcessPool:
                            worker.end()
                            if number in lost:
                                outcomes[number] = Failure(f"two workers died computing it, the last on {worker.name}")
                            else:
                                lost.add(number)
                                waiting.append(number)
                yield outcomes.pop(index)
        finally:
            if running:
                self.close()


class _Worker:
    def __init__(self, name: str, opener: Opener, arguments: Mapping[str, Any]) -> None:
        self.name = name
        self._opening = opener, dict(arguments)
        self._executor: ProcessPoolExecutor | None = None

    def submit(self, item: Any) -> Future[Mapping[str, Any] | Failure]:
        if self._executor is None:
            self._executor = ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), _start)
        with _main_hidden():
            return self._executor.submit(_compute, *self._opening, item)

    def end(self) -> None:
        if self._executor is not None:
            for process in list((self._executor._processes or {}).values()):  # kill_workers() from Python 3.14 on
                process.kill()
            self._executor.shutdown(cancel_futures=True)
            self._executor = None


@contextmanager
def _main_hidden() -> Iterator[None]:
    """Keep processes started inside the block from running the main script again."""
    main = sys.modules["__main__"]
    if getattr(main, "__spec__", None) is None:
        sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


# -- in a worker -------------------------------------------------------------------------------------------------------

_opened: Callable[[Any], Mapping[str, Any]] | None = None


def _start() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the pool's process ends its workers
    os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1"))  # before torch is imported
    os.dup2(2, 1)  # hosts print
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _compute(opener: Opener, arguments: Mapping[str, Any], item: Any) -> Mapping[str, Any] | Failure:
    global _opened
    if _opened is None:
        _opened = open_or_raise(opener, arguments)
    try:
        return dict(_opened(item))
    except NasExtError:
        raise
    except Exception as error:
        failure = Failure.of(error)
        if _device_is_lost():
            print(f"nas-ext: a worker process lost its GPU: {failure.reason}", file=sys.stderr, flush=True)
            os._exit(1)  # another process does the item
        return failure


def _device_is_lost() -> bool:
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_initialized():
        return False
    try:
        torch.cuda.synchronize()
    except RuntimeError:
        return True
    return False
