"""What tuners take: search spaces with and without a name, and arguments that are wrong."""

from __future__ import annotations

import json

import pytest

from nas_core.errors import ConfigError, SpaceError
from nni_ext.hpo.tuner import SearchTuner
from tests.nni_ext.hpo.manager import FILE, SMALL, Manager, evolution

FLAT = {
    "layers": {"_type": "choice", "_value": [1, 2, 3]},
    "kind": {"_type": "choice", "_value": ["a", "b", "c"]},
    "width": {"_type": "randint", "_value": [4, 12]},
}


def test_search_spaces_without_a_name() -> None:
    manager = Manager(SearchTuner(strategy="evolution", **SMALL), FLAT)
    created = []
    for number in range(40):
        parameters = manager.start()
        if parameters is None:
            break
        assert parameters["layers"] in (1, 2, 3)
        assert parameters["kind"] in ("a", "b", "c")
        assert 4 <= parameters["width"] < 12
        created.append(json.dumps(parameters))
        manager.end(number, float(parameters["layers"] + parameters["width"]))
    assert len(created) == len(set(created)) > 20


def test_search_spaces_of_another_space() -> None:
    other = {**FILE, "encoder.embed_dim": {"_type": "choice", "_value": [7]}}
    with pytest.raises(SpaceError, match="nas-ext lab space export hat_small --format nni"):
        Manager(evolution(), other)
    with pytest.raises(SpaceError, match="'lr'"):
        Manager(evolution(), {**FILE, "lr": {"_type": "choice", "_value": [1]}})
    manager = Manager(SearchTuner(strategy="evolution", **SMALL), FLAT)
    with pytest.raises(ConfigError, match="changed during a search"):
        manager.tuner.update_search_space({"layers": FLAT["layers"]})
