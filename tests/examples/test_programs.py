"""The short programs of `examples/`, run as users run them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from nas_core.graph import nasbench201_string
from tests.toys import ROOT
from tests.warm import warm

EXAMPLES = ROOT / "examples"
PROGRAMS = sorted(path.name for path in EXAMPLES.glob("*.py") if path.name != "__init__.py")


def run(program: str, *arguments: object, folder: Path = ROOT) -> str:
    """What it prints, in a process of its own that has a minute."""
    command = ["python", str(EXAMPLES / program), *map(str, arguments)]
    programs = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = warm({**os.environ, "PATH": programs, "PYTHONPATH": str(ROOT)})
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_program_is_listed_where_the_readme_leads() -> None:
    text = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    assert [name for name in PROGRAMS if name not in text] == []
    assert "(examples/README.md)" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_a_search_over_a_formula_finds_the_best_and_goes_on(tmp_path: Path) -> None:
    printed = run("search_formula.py", tmp_path / "run")
    *front, best = printed.splitlines()
    rows = [re.match(r"error (\S+) +(\S+) ms  (.*)", line) for line in front]
    values = [(float(row[1]), float(row[2])) for row in rows if row]
    assert len(values) == len(front) > 4
    assert values == sorted(values, key=lambda pair: (pair[0], -pair[1])) and max(ms for _, ms in values) <= 30
    assert best.endswith(front[0][front[0].index("{") :])
    evaluated = (tmp_path / "run" / "journal.jsonl").read_text()
    assert run("search_formula.py", tmp_path / "run") == printed
    assert (tmp_path / "run" / "journal.jsonl").read_text() == evaluated


def test_attention_alone_decodes_what_it_computes_at_once() -> None:
    first, *times = run("attention_alone.py", 64, 128).splitlines()
    assert float(first.split()[-1]) < 1e-5
    assert [line.split()[0] for line in times] == ["64", "128"]
    assert all(re.fullmatch(r" *\d+ tokens: linear +[\d.]+ ms, softmax +[\d.]+ ms", line) for line in times)


def test_a_predictor_learns_the_formula_and_a_table(tmp_path: Path) -> None:
    assert float(run("accuracy_predictor.py").split()[2]) > 0.5
    cells = np.random.default_rng(1).integers(0, 5, (60, 6))
    pairs = zip(cells, 0.5 + 0.05 * (cells == 3).sum(1), strict=True)
    rows = [{"architecture": nasbench201_string(cell), "accuracy": accuracy} for cell, accuracy in pairs]
    (tmp_path / "table.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    output = run("accuracy_predictor.py", "--table", tmp_path / "table.jsonl", "--learn", 40)
    assert float(output.split()[2]) > 0.3 and "on 20 cells, fitted to 40" in output


@pytest.mark.slow
@pytest.mark.timm
def test_a_timm_supernet_ends_as_a_small_model(tmp_path: Path) -> None:
    pytest.importorskip("timm", reason="needs timm: pip install 'nas-ext[timm]'")
    output = run("timm_supernet.py", tmp_path)
    match = re.match(r"(0\.\d+) M parameters, (\d+)% right: Architecture", output)
    assert match and float(match[1]) <= 0.5 and float(match[2]) > 60
    assert (tmp_path / "subnet.pt").stat().st_size < 4.5 * 1e6 * float(match[1])


@pytest.mark.slow
@pytest.mark.timm
def test_a_trained_vit_ends_as_half_of_it(tmp_path: Path) -> None:
    pytest.importorskip("timm", reason="needs timm: pip install 'nas-ext[timm]'")
    output = run("elastic_vit.py", folder=tmp_path).splitlines()
    trained, match = (re.fullmatch(r"([\d.]+) M: (\d+)% right, after training (\d+)%", line) for line in output)
    assert trained and match and float(match[1]) < 0.6 * float(trained[1])
    assert int(trained[2]) > 70 and int(trained[3]) > 70 and int(match[3]) > max(60, int(match[2]))
    assert (tmp_path / "elastic_vit.pt").stat().st_size < 4.5 * 1e6 * float(match[1])
