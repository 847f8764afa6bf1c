"""The demo: from a parallel corpus to the translation models that trade BLEU against latency best on this machine.

Every step is a command a user would type: ``fairseq-preprocess``, ``fairseq-train`` with the supernet plug-in,
``nas-ext latency``, ``nas-ext search``, ``nas-ext extract``, ``fairseq-generate``; the log of each shows it. The same
command again goes on where an interrupted run stopped.
"""

from __future__ import annotations

import shutil
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from examples.demo.pipeline import Pipeline
from examples.demo.settings import parse
from nas_core.errors import NasExtError
from nas_core.locks import only_process

FOLDERS = ("corpus", "bin", "supernet", "search", "subnets", "logs", "stages")
FILES = ("settings.json", "pace.json", "latency.jsonl", "latency.json", "results.json", "report.html", "results.csv")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the demo; returns the exit code."""
    try:
        settings = parse(argv)
        settings.check_folder()
        pipeline = Pipeline(settings)
        lock = settings.out.with_name(f".{settings.out.name}.lock")
        with only_process(lock, f"runs the demo in {settings.out}", "give another folder with --out"):
            if settings.restart:
                _clear(settings.out)
            settings.settle()
            with _ended_like_interrupted():
                pipeline.main()
    except NasExtError as error:
        print(f"demo: error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\ndemo: interrupted; the same command goes on from here", file=sys.stderr)
        return 130
    return 0


def _clear(folder: Path) -> None:
    """Remove what a run has written, and nothing else."""
    for name in FOLDERS:
        shutil.rmtree(folder / name, ignore_errors=True)
    for name in FILES:
        (folder / name).unlink(missing_ok=True)


@contextmanager
def _ended_like_interrupted() -> Iterator[None]:
    """A demo that is asked to end takes the command it runs with it."""

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
