"""Against a real checkout of NASLib, named by NASLIB_PATH or on PYTHONPATH; in a process of its own."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytestmark = [pytest.mark.naslib, pytest.mark.slow]

NEEDED = ("fvcore", "networkx", "sklearn", "yaml", "PIL")


@pytest.fixture(scope="session")
def driven(tmp_path_factory):
    """What ``drive_naslib.py`` has found."""
    if not os.environ.get("NASLIB_PATH") and importlib.util.find_spec("naslib") is None:
        pytest.skip("no NASLib: set NASLIB_PATH to a checkout (it is no package to install)")
    if absent := [name for name in NEEDED if importlib.util.find_spec(name) is None]:
        pytest.skip(f"NASLib needs {', '.join(absent)}: pip install 'nas-ext[naslib]'")
    folder = tmp_path_factory.mktemp("naslib")
    root = Path(__file__).parents[2]
    folders = (str(root), os.environ.get("NASLIB_PATH"), os.environ.get("PYTHONPATH"))
    path = os.pathsep.join(filter(None, folders))
    done = subprocess.run(
        [sys.executable, "-m", "tests.naslib_ext.drive_naslib", str(folder)],
        env={**os.environ, "PYTHONPATH": path},
        cwd=root,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return json.loads((folder / "found.json").read_text())


def test_nothing_is_left_of_the_repairs(driven):
    assert driven["left_over"] == []


def test_evaluator(driven):
    rows = driven["evaluator"]
    assert [row["train_size"] for row in rows] == [10, 30]
    assert all(np.isfinite(row[name]) for row in rows for name in ("kendalltau", "mae", "rmse", "spearman"))
    assert all(row["hp_recipe"] == "paper" and row["hp_dim"] == 16 for row in rows)
    assert driven["errors_json"] == 3  # the configuration and two rows: NASLib could write its own file


def test_order_of_nasbench201_against_naslib(driven):
    assert driven["nasbench201_compared"] == 500 and driven["nasbench201_unequal"] == 0


def test_nasbench101(driven):
    result = driven["nasbench101"]
    assert result["agreed"] == 300 and 50 < result["exist"] < 250
    assert np.isfinite(result["row"]["kendalltau"]) and result["row"]["mae"] < 60


def test_encodings_of_the_other_spaces(driven):
    for space in ("nasbench101", "nasbench301", "transbench101_micro", "transbench101_macro"):
        assert driven["read"][space] == 10, space


@pytest.mark.parametrize("optimizer", ["Bananas", "Npenas", "BasePredictor"])
def test_search_methods(driven, optimizer):
    result = driven["search"][optimizer]
    assert result["queried"] >= 24 and result["best"] >= 80
    assert result["members"] == ["AccuracyPredictor"] * 2


def test_evaluator_with_a_predictor_of_naslib(driven):
    assert np.isfinite(driven["gcn"]["kendalltau"])
