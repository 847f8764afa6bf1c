"""Bad input: each call raises its error, with a message of one line that names the value."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from nas_core.errors import ConfigError, DataError, MissingHostError, UnknownChoiceError
from nas_core.graph import GraphError
from naslib_ext import AccuracyPredictor, register
from naslib_ext.evaluation import make_space, nasbench201_table
from naslib_ext.graphs import graph_of
from tests.naslib_ext.fakes import TINY, WithOpIndices, sampled


def predictor(**changes):
    return AccuracyPredictor(**{"ss_type": "nasbench201", **TINY, **changes})


def fit(targets, count=3, **changes):
    return lambda _: predictor(**changes).fit(sampled("nasbench201", count), targets)


def graph(space, description):
    return lambda _: graph_of(description, space)


def table(**arrays):
    def read(folder):
        np.savez(folder / "table.npz", **arrays)
        return nasbench201_table(folder / "table.npz", "c_test")

    return read


def text(folder):
    (folder / "text.npz").write_text("no table")
    return nasbench201_table(folder / "text.npz")


CASES = [
    (lambda _: AccuracyPredictor(dimm=16), UnknownChoiceError, "dimm"),
    (lambda _: AccuracyPredictor(model="nn-former", recipe="papr"), UnknownChoiceError, "papr"),
    (lambda _: AccuracyPredictor(seed=-1), ConfigError, "-1"),
    (lambda _: AccuracyPredictor(model="nn-former").set_hyperparams({"hidden": 3}), ConfigError, "hidden"),
    (lambda _: AccuracyPredictor().set_ss_type("nasbench2O1"), UnknownChoiceError, "nasbench2O1"),
    (lambda _: AccuracyPredictor(model="additive", epochs=3), UnknownChoiceError, "epochs"),
    (lambda _: predictor().query(sampled("nasbench201", 1)), ConfigError, "fit"),
    (fit([1.0, 2.0]), DataError, "(2,)"),
    (fit([80.0, float("nan"), 81.0]), DataError, "nan"),
    (fit([80.0], 1), DataError, "1"),
    (fit([1.0, 2.0, 3.0], ss_type=None), ConfigError, "ss_type"),
    (graph("nasbench20l", [0] * 6), UnknownChoiceError, "nasbench20l"),
    (graph("nlp", [0] * 6), UnknownChoiceError, "nlp"),
    (graph("nasbench201", [0, 1, 2]), GraphError, "(0, 1, 2)"),
    (graph("nasbench201", object()), GraphError, "object"),
    (graph("nasbench201", WithOpIndices(None)), GraphError, "nasbench201"),
    (graph("nasbench101", {"matrix": [[0]]}), GraphError, "matrix"),
    (graph("nasbench101", (0, 1, 2)), GraphError, "(0, 1, 2)"),
    (graph("nasbench301", [[0, 1]]), GraphError, "(2, 8, 2)"),
    (graph("transbench101_macro", [1, 2]), GraphError, "4 to 6"),
    (lambda folder: nasbench201_table(folder / "nothing.npz"), DataError, "nothing.npz"),
    (text, DataError, "text.npz"),
    (table(latency=np.zeros(4)), DataError, "(0,)"),
    (table(ops=np.zeros((4, 6), int), c_val_200=np.zeros(4)), UnknownChoiceError, "c_test"),
    (lambda _: make_space("transbench101_micro"), UnknownChoiceError, "transbench101_micro"),
    (lambda _: register("semi_nnformer"), ConfigError, "semi_nnformer"),
    (lambda _: register("gcn"), ConfigError, "gcn"),
    (lambda _: register(epoch=3), UnknownChoiceError, "epoch"),
    (lambda _: register(model="aditive"), UnknownChoiceError, "aditive"),
    (lambda _: register(), MissingHostError, "NASLib"),
]


@pytest.mark.parametrize(("call", "error", "value"), CASES, ids=range(len(CASES)))
def test_bad_input_is_one_line_that_names_it(call, error, value, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "naslib", None)
    with pytest.raises(error) as caught:
        call(tmp_path)
    assert "\n" not in str(caught.value) and value in str(caught.value), str(caught.value)


def test_registrations_that_differ(source_tree):
    register("nnformer", model="nn-former", epochs=7)
    register("sure", processes=0, trees=1)
    for call, value in (
        (lambda: register("nnformer", model="nn-former", epochs=8), "epochs=7"),
        (lambda: register("sure", processes=0, trees=2), "trees=1"),
    ):
        with pytest.raises(ConfigError, match=value):
            call()
