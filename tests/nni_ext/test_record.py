"""Record of a tuner's results: only architectures within the limits are recommended, and a bad folder is an error."""

from __future__ import annotations

from pathlib import Path

from nas_core.models import params_m
from nas_core.report import write_report
from nas_core.report.run import read_run
from nas_core.space.labels import parameters_of
from tests.nni_ext.hpo.manager import SPACE, Manager, evolution, quality
from tests.report.pages import ReadPage


def test_what_is_over_a_limit_is_no_finalist(experiment: Path) -> None:
    """Trials by hand and imported ones keep to no limit; the better they are, the more it matters."""
    bound = params_m(SPACE.smallest()) * 1.2
    manager = Manager(evolution(max_params_m=bound))
    parameters = parameters_of(SPACE, SPACE.largest())
    manager.tuner.receive_trial_result(100, parameters, -2.0, customized=True)
    assert not read_run(experiment).finalists
    manager.run(5)
    manager.tuner.import_data([{"parameter": {**parameters, "encoder.embed_dim": 96}, "value": -1.0}])
    search_run = read_run(experiment)
    assert [evaluation["metrics"]["default"] for evaluation in search_run.evaluations][::6] == [-2.0, -1.0]
    assert all(finalist["metrics"]["params_m"] <= bound for finalist in search_run.finalists)
    best = min(evaluation["metrics"]["default"] for evaluation in search_run.evaluations[1:6])
    assert [finalist["metrics"]["default"] for finalist in search_run.finalists if finalist["best_of"]] == [best]


def test_a_report_names_the_metric_and_the_experiment(experiment: Path) -> None:
    """NNI calls every metric ``default``, and our folder is called alike in every experiment."""
    manager = Manager(evolution(unit="bits per token"))
    for number in range(4):
        parameters = manager.start()
        assert parameters is not None
        loss = quality(parameters)
        manager.end(number, {"default": loss, "loss": loss, "params_m": 1.0 + loss})
    run = read_run(experiment)
    assert (run.name, run.metric, run.maximised) == ("abc", "loss", False)
    text = write_report(experiment).read_text(encoding="utf-8")
    assert "default" not in ReadPage(text).text and "minimise loss" in text
    assert run.sessions and "default" not in (experiment / "evaluations.csv").read_text(encoding="utf-8")
