"""Searches of several metrics: by a tuner, whose trials report them by name, and by a strategy of NAS experiments."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nni_ext  # before NNI: it mends torchvision
from nas_core.report.run import read_run
from nas_core.search import STRATEGIES
from nas_core.space import get_space
from nas_core.space.labels import architecture_of
from nni_ext.hpo.search_space import nni_search_space
from nni_ext.objectives import further_objectives, with_negatives

nni = pytest.importorskip("nni", reason="needs NNI: pip install 'nas-ext[nni]'")

SPACE = get_space("hat_small")
FRONT = {"iterations": 4, "population": 8}


def reported(architecture: Any) -> dict[str, float]:
    """Two metrics at odds, one of which is better when it is larger."""
    codes = SPACE.encode(architecture, "layers")[0].astype(float)
    weights = np.linspace(0.2, 3.0, len(codes))
    return {"loss": float(((1 - codes) * weights[::-1]).sum()), "images_per_s": 50 - float((codes * weights).sum())}


def tuned(tuner: Any, most: int = 1000) -> list[dict[str, float]]:
    """What its trials report, one after the other."""
    tuner.update_search_space(json.loads(json.dumps(nni_search_space(SPACE))))
    results: list[dict[str, float]] = []
    for number in range(most):
        try:
            parameters = tuner.generate_parameters(number)
        except nni.NoMoreTrialError:
            break
        metrics = reported(architecture_of(SPACE, parameters))
        tuner.receive_trial_result(number, parameters, {"default": metrics["loss"], **metrics})
        tuner.trial_end(number, True)
        results.append(metrics)
    return results


def tuner(**changes: Any) -> Any:
    settings = {"strategy": "multi-objective", "space": "hat_small", "objectives": ["loss", "-images_per_s"], **FRONT}
    return nni_ext.SearchTuner(**{**settings, **changes})


def test_a_tuner_weighs_what_trials_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NNI_LOG_DIRECTORY", str(tmp_path / "log"))
    search_tuner = tuner()
    result = tuned(search_tuner)
    assert len(result) == 8 + 3 * 8 and search_tuner.metric == "loss"
    front = search_tuner._search.strategy.front()  # private: NNI receives its proposals only
    vectors = {(one["loss"], -one["images_per_s"]) for one in result}
    best = {v for v in vectors if not any(o[0] <= v[0] and o[1] <= v[1] and o != v for o in vectors)}
    assert {vector for _, vector in front} == best and len(best) > 3
    run = read_run(tmp_path / "nas-ext")
    assert run.settings["objectives"] == ["loss", "-images_per_s"] and run.strategies() == ["multi-objective (seed 0)"]
    assert len(run.evaluations) == 32
    assert len((tmp_path / "nas-ext" / "pareto.csv").read_text().splitlines()) == 1 + len(best)
    repeated = tuner()
    assert tuned(repeated, 5) == []  # the same search, whose results were recorded
    assert repeated._search.strategy.front() == front  # private: as above


def test_a_tuner_of_few_trials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NNI_LOG_DIRECTORY", str(tmp_path / "log"))
    settings = {"space": "hat_small", "objectives": ["loss", "-images_per_s"], "evaluations": 16, "candidates": 50}
    search_tuner = nni_ext.SearchTuner(strategy="hypervolume", **settings)
    assert len(tuned(search_tuner)) == 16
    assert len(search_tuner._search.strategy.front()) > 2  # private: NNI receives its proposals only


def test_directions_by_name() -> None:
    front = STRATEGIES.get("multi-objective")
    assert further_objectives(front, ["loss", "top1", "latency_ms", "-speed"], "loss") == (
        "-top1",
        "latency_ms",
        "-speed",
    )
    assert with_negatives({"top1": 70.0, "x": None}, ["-top1", "-x", "y"]) == {"top1": 70.0, "x": None, "-top1": -70.0}


@pytest.mark.filterwarnings("ignore::RuntimeWarning:nni")
def test_a_strategy_of_experiments_weighs_what_evaluators_report(tmp_path: Path) -> None:
    pytest.importorskip("nni.nas.strategy", reason="needs NNI: pip install 'nas-ext[nni]'")
    from nni.nas.evaluator import FunctionalEvaluator
    from nni.nas.execution import SequentialExecutionEngine
    from nni.nas.space import SimplifiedModelSpace

    def evaluate(model: Any) -> None:
        metrics = reported(model.architecture)
        nni.report_final_result({"default": -metrics["loss"], "images_per_s": metrics["images_per_s"]})

    def searched(models: int, **more: Any) -> Any:
        space = SimplifiedModelSpace.from_model(nni_ext.as_model_space(SPACE), FunctionalEvaluator(evaluate))
        strategy = nni_ext.SearchStrategy("multi-objective", objectives=["default", "-images_per_s"], **FRONT, **more)
        strategy(space, SequentialExecutionEngine(models))
        return strategy

    full = searched(100)
    assert len(full.archive) == 32 and full.search.objectives == ("-metric", "-images_per_s")
    entry = full.archive[0]
    metrics = reported(entry.architecture)
    assert entry.metric == -metrics["loss"] and entry.others == {"images_per_s": metrics["images_per_s"]}
    assert {vector[1] for _, vector in full.search.front()} <= {-one.others["images_per_s"] for one in full.archive}
    for models in (9, 100):  # killed after nine, and gone on from the record
        recorded = searched(models, record=tmp_path / "run")
    assert recorded.archive == full.archive and recorded.search.front() == full.search.front()
