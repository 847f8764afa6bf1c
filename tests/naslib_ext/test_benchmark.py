"""The command line, where there is no NASLib; with one: test_naslib.py."""

import itertools

import numpy as np

from nas_core import progress
from naslib_ext import benchmark
from naslib_ext.nn_former import NNFormerPredictor
from tests.naslib_ext import fakes


def test_table():
    row = {"kendalltau": 0.5, "spearman": 0.6, "mae": 1.0, "fit_s": 2.0, "query_ms": 0.1, "one_query_ms": 3.0}
    result = {
        "space": "nasbench201",
        "data": "t.npz:val",
        "test_size": 20,
        "trials": 2,
        "results": {
            "nnformer": [{"train_size": n, **row, "kendalltau": tau} for n in (5, 10) for tau in (0.5, 0.7)],
            "xgb": [{"train_size": 5, **row, "spearman": None}],
        },
        "failed": {"gp": "MissingHostError: needs pyro-ppl"},
    }
    title, head, *lines = benchmark.table(result).splitlines()
    assert "20 test architectures" in title and "kendalltau" in head
    assert [line.split()[:3] for line in lines[:3]] == [
        ["nnformer", "5", "0.600"], ["nnformer", "10", "0.600"], ["xgb", "5", "0.500"]
    ]  # fmt: skip
    assert "±0.100" in lines[0] and "nan" in lines[2] and lines[3].endswith("needs pyro-ppl")


def test_slow_work_reports_progress(monkeypatch, capsys):
    """Each reading of the clock is 100 s later."""
    monkeypatch.setattr(progress, "clock", itertools.count(0, 100).__next__)
    stream = np.random.default_rng(0)
    cells = [fakes.nasbench201(stream) for _ in range(40)]

    def fitted(predictor, *_, **__):
        predictor.fit(cells, stream.uniform(80, 90, len(cells)))
        return []

    def made(name, space, **settings):
        return NNFormerPredictor(ss_type=space, **{**fakes.TINY, "epochs": 3})

    for name, stand_in in {"evaluate": fitted, "make_predictor": made, "make_space": str}.items():
        monkeypatch.setattr(benchmark, name, stand_in)
    monkeypatch.setattr(benchmark, "pickled_table", lambda *_: {})
    benchmark.run(benchmark.parser().parse_args(["--predictors", "nnformer", "xgb", "gcn"]))
    lines = capsys.readouterr().err.splitlines()
    assert any(line.startswith("comparing predictors: 2 of 3 after ") and line.endswith(" left") for line in lines)
    training = [line for line in lines if line.startswith("training nn-former: ")]
    assert len(training) > 3 and all(" left" in line for line in training)
