"""`make demo` at small size."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.toys import ROOT
from tests.warm import python

SMALL = ["--pairs", "320", "--updates", "4", "--samples", "16", "--repeats", "2", "--population", "2", "--limits", "1"]


def demo(*arguments: object) -> subprocess.CompletedProcess[str]:
    program, environment = python()
    command = [program, "-m", "examples.demo", *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_small_run_ends_in_a_front_and_is_not_repeated(tmp_path: Path) -> None:
    first = demo("--out", tmp_path, *SMALL)
    assert first.returncode == 0, first.stdout + first.stderr
    rows = json.loads((tmp_path / "results.json").read_text())["networks"]
    assert [rows[0]["name"], rows[-1]["name"]] == ["smallest", "largest"] and len(rows) >= 2
    assert rows[0]["latency_ms"] < rows[-1]["latency_ms"] and all(0 <= row["bleu"] <= 100 for row in rows)
    assert (tmp_path / "search" / "report.html").exists()
    repeated = demo("--out", tmp_path, *SMALL)
    assert repeated.returncode == 0 and repeated.stdout.count("done before") == 4 + len(rows)  # all but the report


def test_a_failing_stage_ends_the_demo_with_the_place_of_its_log(tmp_path: Path) -> None:
    failed = demo("--out", tmp_path, "--data", tmp_path / "nothing", *SMALL)
    assert failed.returncode == 1
    assert f"fairseq-train failed with exit code 1; see {tmp_path / 'logs' / 'train.log'}" in failed.stderr
