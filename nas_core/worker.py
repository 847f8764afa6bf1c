"""The program of one worker, see :mod:`nas_core.workers`: JSON lines in, JSON lines out, until its input ends."""

from __future__ import annotations

import importlib
import json
import os
import queue
import sys
import threading
from typing import IO, Any

from nas_core.errors import NasExtError
from nas_core.jobs import Failure


def main() -> None:
    """Open what the first line says, then answer each item; never returns before the input has ended.

    What the work prints goes to stderr. When the process that started it closes the pipe, or is killed, this one ends
    at once, whatever it is doing.
    """
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(os.fdopen(os.dup(0), "rb"), lines), daemon=True).start()
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)  # a work that reads its input finds none
    os.close(empty)
    opening = json.loads(lines.get())
    try:
        opener = getattr(importlib.import_module(opening["module"]), opening["function"])
        each = opener(**opening["arguments"])
    except NasExtError as error:
        return _end(answers, {"refused": str(error)})
    except Exception as error:
        return _end(answers, {"broken": Failure.of(error).reason})
    _answer(answers, {"began": True})
    while True:
        item = json.loads(lines.get())["item"]
        try:
            _answer(answers, {"result": dict(each(item))})
        except NasExtError as error:
            return _end(answers, {"refused": str(error)})
        except BrokenPipeError:
            os._exit(1)
        except Exception as error:
            if _device_is_lost():
                print(f"the device of this process computes no more: {Failure.of(error).reason}", file=sys.stderr)
                sys.stderr.flush()
                os._exit(1)  # another process does the item
            _answer(answers, {"failed": Failure.of(error).reason})


def _device_is_lost() -> bool:
    """Whether CUDA answers every call of this process with the error of an earlier one, as after an illegal access."""
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
    """Say why, and stay until that was read: an end before would look like a death."""
    _answer(answers, record)
    sys.stderr.flush()
    threading.Event().wait()
