"""A source tree with NASLib's name, made of what breaks and of what is wrapped."""

from __future__ import annotations

import importlib
import sys

import pytest

from naslib_ext import compat

FILES = {
    "naslib/__init__.py": "",
    "naslib/predictors/__init__.py": """
from collections import Iterable
import absent_peer.deep.part as part
from absent_peer import Base, model

class Built(Base):
    pass

def use_peer():
    return part.Thing.made(1)
""",
    "naslib/predictors/ensemble.py": """
class Ensemble:
    def __init__(self, num_ensemble=3, predictor_type=None, ss_type=None, encoding_type=None):
        self.num_ensemble, self.predictor_type = num_ensemble, predictor_type
        self.ss_type, self.encoding_type = ss_type, encoding_type

    def get_ensemble(self):
        return [{"gcn": "a gcn"}[self.predictor_type] for _ in range(self.num_ensemble)]
""",
    "naslib/defaults/__init__.py": "",
    "naslib/defaults/predictor_evaluator.py": """
from sklearn import metrics

def rmse(first, second):
    return metrics.mean_squared_error(first, second, squared=False)
""",
}


@pytest.fixture
def source_tree(tmp_path, monkeypatch):
    """The folder, on the search path; afterwards all of it is forgotten."""
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(compat, "NEEDED", ("scipy.stats",))
    monkeypatch.setattr(compat, "PEERS", {"absent_peer": "absent-peer", "scipy": "scipy"})
    compat._report.cache_clear()
    monkeypatch.syspath_prepend(str(tmp_path))
    forget()
    importlib.invalidate_caches()
    yield tmp_path
    forget()


def forget():
    for name in [name for name in sys.modules if name.partition(".")[0] == "naslib"]:
        del sys.modules[name]
