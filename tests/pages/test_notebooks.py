"""The notebooks run without warnings, and their outputs name no paths."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.warm import python

ROOT = Path(__file__).resolve().parents[2]
NEEDED = {"translation": "fairseq", "images": "timm", "predictors": "torch"}
"""Notebook -> required module."""


@pytest.mark.parametrize("name", NEEDED)
def test_a_notebook_runs(name: str) -> None:
    pytest.importorskip("nbclient", reason="nbclient is not installed")
    pytest.importorskip(NEEDED[name], reason=f"{NEEDED[name]} is not installed")
    program, environment = python()
    done = subprocess.run(
        [program, str(ROOT / "tools" / "notebooks.py"), "--check", name],
        env={**environment, "QUICK": "1"}, cwd=ROOT,
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=290, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    assert name in done.stdout


def test_kept_outputs_are_those_of_a_run_without_paths() -> None:
    files = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
    assert {file.stem for file in files} == set(NEEDED)
    for file in files:
        text = file.read_text(encoding="utf-8")
        assert '"output_type": "error"' not in text and '"name": "stderr"' not in text and '"outputs": [' in text
        assert not re.search(r"(?<![\w.~/])/(?:home|root|tmp|work|usr|opt|Users)/", text), file
