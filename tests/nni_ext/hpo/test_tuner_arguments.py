"""What tuners take: search spaces with and without a name, and arguments that are wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nas_core.errors import ConfigError, NasExtError, SpaceError, UnknownChoiceError
from nas_core.predictor.ranker import NNFormerRanker
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


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"_type": "uniform", "_value": [0, 1]}, "architectures are made of"),
        ({"_type": "choice", "_value": [[1], [2]]}, "expected a number or a name"),
        ({"_type": "choice", "_value": []}, "no options"),
        ({"_type": "randint", "_value": [3, 3]}, "expected 1 to"),
        ({"_type": "randint", "_value": ["3", 5]}, "architectures are made of"),
        ({"_type": "randint", "_value": [0, 2.5]}, "architectures are made of"),
        ("x", "architectures are made of"),
    ],
)
def test_search_spaces_that_are_none(entry: Any, message: str) -> None:
    with pytest.raises(SpaceError, match=message):
        Manager(SearchTuner(strategy="evolution", **SMALL), {"x": entry})


def test_search_spaces_of_another_space() -> None:
    other = {**FILE, "encoder.embed_dim": {"_type": "choice", "_value": [7]}}
    with pytest.raises(SpaceError, match="nas-ext lab space export hat_small --format nni"):
        Manager(evolution(), other)
    with pytest.raises(SpaceError, match="'lr'"):
        Manager(evolution(), {**FILE, "lr": {"_type": "choice", "_value": [1]}})
    manager = Manager(SearchTuner(strategy="evolution", **SMALL), FLAT)
    with pytest.raises(ConfigError, match="changed during a search"):
        manager.tuner.update_search_space({"layers": FLAT["layers"]})


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"population_size": 3}, UnknownChoiceError, "population_size"),
        (
            {"strategy": "HATEvolution"},
            UnknownChoiceError,
            "expected one of evolution, random, ranknas",
        ),
        ({"iterations": "5"}, ConfigError, "iterations is '5'; expected a whole number"),
        ({"objectives": ["loss", "latency_ms"]}, ConfigError, "strategy evolution minimises loss alone"),
        ({"population": 100}, ConfigError, "add|expected 14"),
        ({"mutation_prob": "x"}, ConfigError, "mutation_prob"),
        ({"optimize_mode": "best"}, UnknownChoiceError, "minimize"),
        ({"space": "hat_smal"}, NasExtError, "hat_small"),
        ({"seed": -1}, ConfigError, "seed"),
        ({"max_params_m": "2"}, ConfigError, "expected a number"),
        ({"max_params_m": 2, "space": None}, ConfigError, "needs space"),
        ({"max_cache_mb": 2, "workload": "beam=4"}, ConfigError, "workload is 'beam=4'; expected settings by name"),
        ({"max_params_m": 2, "workload": {"beam": 4}}, ConfigError, "max_memory_mb or max_cache_mb"),
        ({"max_latency_ms": 8}, ConfigError, "latency_model"),
        ({"latency_model": "no.json", "max_latency_ms": 8}, NasExtError, "no.json"),
    ],
)
def test_wrong_arguments(arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        evolution(**arguments)


def test_wrong_arguments_of_the_ranker() -> None:
    with pytest.raises(UnknownChoiceError, match=r"unknown setting of trees 'encodin': .*Did you mean 'encoding'"):
        ranknas(trees={"encodin": "layers"})
    with pytest.raises(UnknownChoiceError, match="summary, layers, onehot"):
        ranknas(trees={"encoding": "rows"})
    with pytest.raises(ConfigError, match="rounds is 'many'; expected a whole number"):
        ranknas(trees={"rounds": "many"})
    with pytest.raises(ConfigError, match="trees is 'small'; expected settings by name"):
        ranknas(trees="small")
    with pytest.raises(ConfigError, match="trees learn 'regression' with ranker 'boosted'; give ranker alone"):
        ranknas(trees={"objective": "regression"})
    with pytest.raises(UnknownChoiceError, match="Did you mean 'nn-former'"):
        ranknas(ranker="nnformer")


def test_the_population_alone_gives_hats_parts() -> None:
    config = SearchTuner(strategy="evolution", space="hat_small", population=30).config
    assert (config.parents, config.mutations, config.crossovers) == (6, 12, 12)
    assert SearchTuner(strategy="evolution", parents=5).config.population == 105


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


def test_nn_former_as_the_ranker(experiment: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fitted = []
    fit = NNFormerRanker.fit
    monkeypatch.setattr(
        NNFormerRanker, "fit", lambda self, rows, values: (fitted.append(len(rows)), fit(self, rows, values))
    )
    manager = Manager(ranknas(ranker="nn-former", samples=8, rankings=1, per_ranking=2))
    assert len(manager.run()) == 10
    assert fitted == [8]
    with pytest.raises(ConfigError, match="ranker = 'nn-former', now it is 'boosted'"):
        Manager(ranknas(ranker=None, samples=8, rankings=1, per_ranking=2))
    with pytest.raises(ConfigError, match="no graph reader takes"):
        Manager(SearchTuner(strategy="ranknas", ranker="nn-former"), FLAT)
