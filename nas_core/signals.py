"""Orderly end of a process by SIGTERM."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def sigterm_as_exit() -> Iterator[None]:
    """Make SIGTERM raise SystemExit inside a ``with`` block, unless there is another handler.

    Half-written files are then removed and child processes ended, as after Ctrl-C.
    """

    def exit_process(number: int, _frame: object) -> None:
        raise SystemExit(128 + number)

    is_default = (
        threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    )
    if is_default:
        signal.signal(signal.SIGTERM, exit_process)
    try:
        yield
    finally:
        if is_default:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
