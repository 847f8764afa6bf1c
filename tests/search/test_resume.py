"""A search killed at any moment continues to the identical journal and archive."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.search.runs import run

ROOT = Path(__file__).resolve().parents[2]

PROGRAM = """
import sys, time
from pathlib import Path

from tests.search.runs import run
from nas_core.search import search
from tests.search.runs import run
from tests.contracts.strategy import quality

def evaluate(architecture):
    time.sleep(0.004)
    return {"loss": quality(architecture)}

run(Path(sys.argv[1]), evaluate)
"""

COMPARED = ("config.yaml", "journal.jsonl", "state.json", "pareto.csv", "finalists.json")


def start(folder: Path) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    return subprocess.Popen([sys.executable, "-c", PROGRAM, str(folder)], cwd=ROOT, env=environment)


def test_killed_at_random_moments_it_ends_identically(tmp_path: Path) -> None:
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    assert start(whole).wait(60) == 0
    moments = random.Random(0)
    lines = len((whole / "journal.jsonl").read_bytes().splitlines())
    kills = []
    for part in range(1, 7):  # killed a moment after so many lines, so that progress does not depend on the machine
        process = start(broken)
        journal = broken / "journal.jsonl"
        deadline = time.monotonic() + 30
        while process.poll() is None and time.monotonic() < deadline:
            if journal.exists() and journal.read_bytes().count(b"\n") >= part * lines // 8:
                break
        time.sleep(moments.random() * 0.02)
        process.send_signal(signal.SIGKILL)
        kills.append(process.wait(10))
    assert kills.count(-signal.SIGKILL) >= 4
    assert start(broken).wait(60) == 0
    for name in COMPARED:
        assert (broken / name).read_bytes() == (whole / name).read_bytes(), name


def test_cut_at_any_byte_the_journal_is_completed(tmp_path: Path) -> None:
    """What a kill or a full disk can leave: every prefix of the journal, with or without the files derived from it."""
    run(tmp_path / "whole")
    content = (tmp_path / "whole" / "journal.jsonl").read_bytes()
    moments = random.Random(1)
    for attempt in range(12):
        folder = tmp_path / str(attempt)
        folder.mkdir()
        (folder / "config.yaml").write_bytes((tmp_path / "whole" / "config.yaml").read_bytes())
        (folder / "journal.jsonl").write_bytes(content[: moments.randrange(len(content))])
        (folder / "state.json").write_text("{half wri")
        run(folder)
        for name in COMPARED:
            assert (folder / name).read_bytes() == (tmp_path / "whole" / name).read_bytes(), name
