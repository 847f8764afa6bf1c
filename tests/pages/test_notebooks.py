"""The notebooks run from top to bottom, and what they keep is what a run makes; ``tools/notebooks.py`` does both."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.warm import python

ROOT = Path(__file__).resolve().parents[2]
TOOL = ROOT / "tools" / "notebooks.py"
NEEDED = {"translation": "fairseq", "images": "timm", "predictors": "torch"}
"""Each notebook, and the host it cannot run without."""


def run(*arguments: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    program, environment = python()
    return subprocess.run(
        [program, str(TOOL), *arguments],
        env={**environment, "QUICK": "1"}, cwd=cwd,
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=290, check=False,
    )  # fmt: skip


@pytest.mark.parametrize("name", NEEDED)
def test_a_notebook_runs_and_keeps_its_outputs(name: str) -> None:
    pytest.importorskip("nbclient", reason="nbclient is not installed")
    pytest.importorskip(NEEDED[name], reason=f"{NEEDED[name]} is not installed")
    done = run("--check", name)
    assert done.returncode == 0, done.stderr[-3000:]
    assert name in done.stdout


def test_every_notebook_is_in_the_list_and_in_the_site() -> None:
    here = {path.stem for path in (ROOT / "docs" / "notebooks").glob("*.ipynb")}
    assert here == set(NEEDED)
    pages = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert all(f"notebooks/{name}.ipynb" in pages for name in here)


def test_an_unknown_name_is_one_line() -> None:
    pytest.importorskip("nbclient", reason="nbclient is not installed")
    done = run("nothing")
    assert done.returncode == 1
    assert done.stderr.strip() == "error: no notebook 'nothing'; there are images, predictors, translation"
