"""NASLib is made importable while it is imported, and nothing else changes for good."""

import collections
import importlib.util
import logging
import subprocess
import sys
from pathlib import Path

import pytest

import naslib_ext
from nas_core.errors import MissingHostError
from naslib_ext import compat


def test_import_with_stand_ins_that_vanish(source_tree, caplog):
    with caplog.at_level(logging.INFO):
        (module,) = compat.load("naslib.predictors")
    assert issubclass(module.Built, module.Base)
    assert not hasattr(collections, "Iterable")
    assert not [name for name in sys.modules if name.startswith("absent_peer")]
    assert importlib.util.find_spec("absent_peer") is None
    with pytest.raises(MissingHostError, match=r"made needs the package absent-peer.*pip install absent-peer"):
        module.use_peer()
    records = [record.getMessage() for record in caplog.records if "empty modules" in record.getMessage()]
    assert len(records) == 1 and "absent_peer" in records[0] and "scipy" not in records[0]
    compat.load("naslib.predictors")


def test_stand_ins_vanish_after_a_failed_import_too(source_tree):
    (source_tree / "naslib/broken.py").write_text("import absent_peer\nraise OSError('no data here')\n")
    with pytest.raises(MissingHostError, match="OSError: no data here"):
        compat.load("naslib.broken")
    assert not [name for name in sys.modules if name.startswith("absent_peer")]
    assert not hasattr(collections, "Iterable")


def test_root_mean_squared_error_as_naslib_asks_for_it(source_tree):
    metrics = pytest.importorskip("sklearn.metrics")
    real = metrics.mean_squared_error
    (module,) = compat.load("naslib.defaults.predictor_evaluator")
    assert module.rmse([1.0, 2.0], [4.0, 6.0]) == pytest.approx(12.5**0.5)
    assert module.metrics.mean_squared_error([1.0, 2.0], [4.0, 6.0]) == pytest.approx(12.5)
    assert module.metrics.r2_score is metrics.r2_score and metrics.mean_squared_error is real


def test_packages_that_naslib_needs(source_tree, monkeypatch):
    monkeypatch.setattr(compat, "NEEDED", ("package_that_is_not_there",))
    with pytest.raises(MissingHostError, match=r"package_that_is_not_there.*pip install 'nas-ext\[naslib\]'"):
        compat.load("naslib.predictors")
    monkeypatch.setitem(sys.modules, "naslib", None)
    with pytest.raises(MissingHostError, match=r"NASLib was not found.*git clone"):
        compat.load("naslib.predictors")


def test_importing_the_plug_in_imports_no_naslib():
    script = "import sys, naslib_ext.evaluation, naslib_ext.plugin; print('naslib' in sys.modules, *naslib_ext.__all__)"
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=root, capture_output=True, text=True, timeout=120, check=True
    )
    assert done.stdout.startswith("False") and all(hasattr(naslib_ext, name) for name in naslib_ext.__all__)
