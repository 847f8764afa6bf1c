"""Stages of a long run: each writes a log, leaves a stamp when it is done, and is skipped when it was done before.

A stage is done when its stamp names the same key (commands and options of this and all earlier stages) and its outputs
exist. A stage that was killed has no stamp; it is started again, and the commands themselves continue from what they
have (checkpoints, measurements, the search's journal).
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from examples.demo.pace import Clock, Remaining, spoken
from nas_core.errors import NasExtError
from nas_core.files import read_json, write_json

TAIL_LINES, TAIL_WIDTH = 12, 200
STATUS_EVERY_S = 20.0
"""How often progress is printed where the terminal cannot rewrite a line."""

POLL_EVERY_S = 2.0

Watch = Callable[[str], str | None]
"""Output line -> what to show as progress, or None."""
Until = Callable[[str], bool]
"""Output line -> whether the command has told enough and is ended."""
Poll = Callable[[], str | None]
"""What to show as progress, asked for every two seconds."""


class StageError(NasExtError):
    """A command of a stage failed; its log says why."""


class Screen:
    """One line per stage: its name, its progress (rewritten in place on a terminal), how long it took."""

    def __init__(self) -> None:
        self.live = sys.stdout.isatty()
        self._shown = ""
        self._last = 0.0

    def say(self, text: str) -> None:
        self._wipe()
        print(text, flush=True)

    def status(self, text: str) -> None:
        if self.live:
            self._wipe()
            self._shown = text[: os.get_terminal_size().columns - 1] if text else ""
            print(self._shown, end="", flush=True)
        elif time.monotonic() - self._last > STATUS_EVERY_S:
            self._last = time.monotonic()
            print(text, flush=True)

    def _wipe(self) -> None:
        if self._shown:
            print("\r" + " " * len(self._shown) + "\r", end="")
            self._shown = ""


class Runner:
    """Runs the stages of one folder in order.

    Args:
        folder: the run folder; logs go to ``logs/`` and stamps to ``stages/`` in it.
        threads: what ``OMP_NUM_THREADS`` is set to for the commands; may be changed between them.
    """

    def __init__(self, folder: Path, threads: int, stages: int) -> None:
        self.folder = folder
        self.screen = Screen()
        self.times: dict[str, float] = {}
        """Seconds each stage took, when it ran, with those of runs that were interrupted."""
        self.threads = threads
        self._count = stages
        self._key = ""
        self._name = "start"
        self._done = 0
        self._log = folder / "logs"

    def stage(
        self,
        name: str,
        title: str,
        inputs: Any,
        outputs: Sequence[Path],
        action: Callable[[], object],
        fresh: Sequence[Path] = (),
    ) -> None:
        """Run ``action`` unless it ran before with equal ``inputs`` (JSON-able), after equal earlier stages.

        ``fresh`` is what the stage continues from when it was interrupted, and what is removed first when it was made
        with other inputs.

        Raises:
            StageError: a command failed, or an output is missing afterwards.
        """
        self._name = name
        self._done += 1
        number = f"[{self._done}/{self._count}]"
        self._key = hashlib.sha256(json.dumps([self._key, name, inputs], sort_keys=True).encode()).hexdigest()[:16]
        stamp = self.folder / "stages" / f"{name}.json"
        before = read_json(stamp) if stamp.exists() else {}
        same = before.get("key") == self._key
        if same and before.get("seconds") is not None and all(path.exists() for path in outputs):
            self.times[name] = float(before["seconds"])
            self.screen.say(f"{number} {title}: done before ({_duration(self.times[name])})")
            return
        if not same:
            for path in fresh:
                shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
            self.log.unlink(missing_ok=True)
        spent = float(before.get("spent", 0.0)) if same else 0.0
        write_json(stamp, {"key": self._key, "seconds": None, "spent": spent})
        self.screen.say(f"{number} {title}")
        start = time.monotonic()
        try:
            action()
        except BaseException:  # what an interrupted stage took counts when it is continued
            write_json(stamp, {"key": self._key, "seconds": None, "spent": spent + time.monotonic() - start})
            raise
        seconds = spent + time.monotonic() - start
        missing = [str(path) for path in outputs if not path.exists()]
        if missing:
            raise StageError(f"stage {name!r} ended without writing {', '.join(missing)}; see {self.log}")
        self.times[name] = seconds
        write_json(stamp, {"key": self._key, "seconds": seconds})
        self.screen.say(f"      {_duration(seconds)}")

    def each(self, items: Sequence[Any], clock: Clock = time.monotonic) -> Iterator[Any]:
        """Yield the items of a stage, each with a ``name``; show which one is next and how long the rest takes."""
        remaining = Remaining(len(items), clock)
        for index, item in enumerate(items):
            left = remaining(index)
            to_go = f", {spoken(left)} to go" if left else ""
            self.screen.status(f"      {item.name} ({index + 1} of {len(items)}{to_go})")
            yield item

    @property
    def log(self) -> Path:
        return self._log / f"{self._name}.log"

    def command(
        self,
        argv: Sequence[object],
        watch: Watch | None = None,
        poll: Poll | None = None,
        until: Until | None = None,
    ) -> str:
        """Run one command, its output in the stage's log, to its end or until it has told enough; returns the output.

        Raises:
            StageError: it could not be started or its exit code is not 0; the log's last lines are printed before.
        """
        line = [str(word) for word in argv]
        environment = {
            **os.environ,
            "OMP_WAIT_POLICY": "PASSIVE",  # a thread that spins while it waits holds up the one it waits for
            "OMP_NUM_THREADS": str(self.threads),
            "PYTHONUNBUFFERED": "1",
            "PYTHONIOENCODING": "utf-8",
            "PYTHONWARNINGS": "ignore",
        }
        self.log.parent.mkdir(parents=True, exist_ok=True)
        output: list[str] = []
        with open(self.log, "a", encoding="utf-8", buffering=1) as log:
            log.write("$ " + " ".join(line) + "\n")
            try:
                process = subprocess.Popen(
                    line,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    encoding="utf-8",
                    errors="replace",
                )
            except OSError as error:
                raise StageError(f"cannot start {line[0]}: {error.strerror or error}; run 'make setup'") from None
            ended = threading.Event()
            if poll:
                threading.Thread(target=self._poll, args=(poll, ended), daemon=True).start()
            try:
                ended_early = self._follow(process, log.write, output, watch, until)
            except BaseException:  # an interrupt: the command must not go on alone
                process.terminate()
                process.wait()
                raise
            finally:
                ended.set()
        if process.wait() and not ended_early:
            self._fail(line, process.returncode, output)
        return "".join(output)

    def _follow(
        self,
        process: subprocess.Popen[str],
        write: Callable[[str], object],
        output: list[str],
        watch: Watch | None,
        until: Until | None,
    ) -> bool:
        """Read the output; returns whether the command was ended because it had told enough."""
        assert process.stdout is not None
        for line in process.stdout:
            write(line)
            output.append(line)
            shown = watch(line) if watch else None
            if shown:
                self.screen.status(f"      {shown}")
            if until and until(line):
                process.terminate()
                return True
        return False

    def _poll(self, poll: Poll, ended: threading.Event) -> None:
        while not ended.wait(POLL_EVERY_S):
            shown = poll()
            if shown and not ended.is_set():
                self.screen.status(f"      {shown}")

    def _fail(self, line: Sequence[str], code: int, output: Sequence[str]) -> None:
        tail = [text.rstrip() for text in "".join(output).replace("\r", "\n").splitlines() if text.strip()]
        self.screen.say("\n".join(f"      | {text[:TAIL_WIDTH]}" for text in tail[-TAIL_LINES:]))
        how = f"failed (exit code {code})"
        if code < 0:  # often the system, which had no memory left
            how = f"was killed (signal {-code}); if you did not, the memory may not suffice for all that runs here"
        raise StageError(
            f"stage {self._name!r}: {Path(line[0]).name} {how}; the whole log is {self.log},"
            " the same command goes on from here"
        )


def _duration(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 60 else f"{int(seconds) // 60} min {int(seconds) % 60:02d} s"


def tool(name: str) -> Path:
    """A command of the environment this Python runs in.

    Raises:
        NasExtError: it is not installed there.
    """
    path = Path(sys.executable).parent / name
    if not path.exists():
        raise NasExtError(f"{name} is not in {path.parent}: run 'make setup', and start the demo with its Python")
    return path
