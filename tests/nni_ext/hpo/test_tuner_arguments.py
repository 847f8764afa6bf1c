"""What tuners take: search spaces with and without a name, and arguments that are wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nas_core.errors import ConfigError, SpaceError, UnknownChoiceError
from nni_ext.hpo.tuner import SearchTuner
from tests.nni_ext.hpo.manager import FILE, SMALL, SPACE, Manager, evolution, ranknas

FLAT = {
    "layers": {"_type": "choice", "_value": [1, 2, 3]},
    "kind": {"_type": "choice", "_value": ["a", "b", "c"]},
    "width": {"_type": "randint", "_value": [4, 12]},
}


def test_search_spaces_without_a_name() -> None:
    manager = Manager(SearchTuner(strategy="evolution", **SMALL), FLAT)
    made = []
    for number in range(40):
        parameters = manager.start()
        if parameters is None:
            break
        assert parameters["layers"] in (1, 2, 3)
        assert parameters["kind"] in ("a", "b", "c")
        assert 4 <= parameters["width"] < 12
        made.append(json.dumps(parameters))
        manager.end(number, float(parameters["layers"] + parameters["width"]))
    assert len(made) == len(set(made)) > 20


def test_search_spaces_of_another_space() -> None:
    other = {**FILE, "encoder.embed_dim": {"_type": "choice", "_value": [7]}}
    with pytest.raises(SpaceError, match="nas-ext lab space export hat_small --format nni"):
        Manager(evolution(), other)
    with pytest.raises(SpaceError, match="'lr'"):
        Manager(evolution(), {**FILE, "lr": {"_type": "choice", "_value": [1]}})
    manager = Manager(SearchTuner(strategy="evolution", **SMALL), FLAT)
    with pytest.raises(ConfigError, match="changed during a search"):
        manager.tuner.update_search_space({"layers": FLAT["layers"]})


def test_genes_that_matter_to_a_limit_are_kept_and_reported(experiment: Path) -> None:
    limited = {"max_params_m": 1.2, "samples": 12, "rankings": 1, "per_ranking": 4, "keep_genes": 1}
    manager = Manager(ranknas(**limited))
    assert len(manager.run()) == 16
    (insight,) = json.loads((experiment / "state.json").read_text())["searches"].values()
    assert list(insight["importance"]) == ["default", "params_m"]
    top = [next(iter(genes)) for genes in insight["importance"].values()]
    assert set(top) <= set(insight["free_genes"]) < {choice.name for choice in SPACE.choices}
    assert Manager(ranknas(**limited)).start() is None  # the same search, whose results were recorded
    with pytest.raises(ConfigError, match="prune_by = 'metric-and-limits', now it is 'metric'"):
        Manager(ranknas(**limited, prune_by="metric"))
    with pytest.raises(UnknownChoiceError, match="prune_by"):
        ranknas(prune_by="latency")
