"""Drives a real NASLib and writes what it finds as JSON; a program of its own, so that tests share no state with it."""

from __future__ import annotations

import collections
import contextlib
import io
import json
import logging
import random
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch

from nas_core.graph.nasbench201 import nasbench201_graph
from naslib_ext import AccuracyPredictor, compat, register
from naslib_ext.evaluation import NASBench201Table, Settings, make_space
from naslib_ext.graphs import graph_of
from tests.naslib_ext.fakes import TINY, sampled

FAST = {**TINY, "epochs": 1}
OPS = np.stack(np.meshgrid(*[np.arange(5)] * 6, indexing="ij"), -1).reshape(-1, 6).astype(np.int8)
WORTH = np.array([0.0, 1.0, 1.4, 2.0, 0.4])
ACCURACIES = (75 + WORTH[OPS].sum(1)).astype(np.float32)


SINGLE = {"experiment_type": "single", "train_size_single": 20}


def seed() -> None:
    random.seed(0)
    np.random.seed(0)
    torch.manual_seed(0)


def evaluated(
    folder: Path, space: Any = None, api: Any = None, predictor: Any = None, **changes: Any
) -> list[dict[str, Any]]:
    """NASLib's evaluator with its own way of writing results."""
    settings = {
        "experiment_type": "vary_train_size", "train_size_single": 30, "train_size_list": [10, 30], "test_size": 20,
        "fidelity_single": -1, "fidelity_list": [-1], "max_hpo_time": 0, "uniform_random": 1, "dataset": "cifar10",
        "save": str(folder),
    }  # fmt: skip
    (module,) = compat.load("naslib.defaults.predictor_evaluator")
    seed()
    predictor = predictor or AccuracyPredictor(**TINY)
    evaluator = module.PredictorEvaluator(predictor, config=Settings({**settings, **changes}))
    space = space or make_space("nasbench201")
    evaluator.adapt_search_space(space, load_labeled=False, dataset_api=api or TABLE)
    with contextlib.redirect_stdout(io.StringIO()):
        return evaluator.evaluate()[1:]


def searched(name: str) -> dict[str, Any]:
    """One of NASLib's search methods with an ensemble of ours."""
    optimizers, ensembles = compat.load("naslib.optimizers", "naslib.predictors.ensemble")
    search = Settings(
        epochs=24, k=4, num_init=8, num_ensemble=2, predictor_type="nnformer", acq_fn_type="its",
        acq_fn_optimization="mutation", encoding_type="adjacency_one_hot", num_arches_to_mutate=2, max_mutations=1,
        num_candidates=8, debug_predictor=False,
    )  # fmt: skip
    members: list[str] = []
    ensemble_fit = ensembles.Ensemble.fit

    def fit(self: Any, *arguments: Any, **options: Any) -> Any:
        errors = ensemble_fit(self, *arguments, **options)
        members[:] = [type(member).__name__ for member in self.ensemble]
        return errors

    ensembles.Ensemble.fit = fit
    seed()
    optimizer = getattr(optimizers, name)(Settings(search=search, dataset="cifar10"))
    optimizer.adapt_search_space(make_space("nasbench201"), dataset_api=TABLE)
    for epoch in range(24):
        optimizer.new_epoch(epoch)
    ensembles.Ensemble.fit = ensemble_fit
    best = max(model.accuracy for model in optimizer.history)
    return {"queried": len(optimizer.history), "best": best, "members": members}


def compared() -> tuple[int, int]:
    """Our order of NAS-Bench-201 against NASLib's own conversion to strings."""
    (conversions,) = compat.load("naslib.search_spaces.nasbench201.conversions")
    cells = np.random.default_rng(0).choice(OPS, 500)
    unequal = 0
    for ops in cells.tolist():
        unequal += graph_of(ops, "nasbench201") != nasbench201_graph(conversions.convert_op_indices_to_str(ops))
    return len(cells), unequal


class Cells101:
    """As much of NASLib's table of NAS-Bench-101 as its search space asks for, with made-up accuracies."""

    def is_valid(self, spec: Any) -> bool:
        return bool(spec.valid_spec and spec.matrix.sum() <= 9)

    def query(self, spec: Any) -> dict[str, float]:
        return {"validation_accuracy": 0.8 + 0.03 * spec.ops.count("conv3x3-bn-relu"), "training_time": 1.0}


def nasbench101(folder: Path) -> dict[str, Any]:
    """Its evaluation, and which cells exist according to NASLib's own pruning."""
    (api,) = compat.load("naslib.utils.nb101_api")
    rows = evaluated(folder, make_space("nasbench101"), {"api": api, "nb101_data": Cells101()}, **SINGLE)
    stream, agreed, existing = np.random.default_rng(0), 0, 0
    for _ in range(300):
        matrix = np.triu(stream.random((7, 7)) < 0.4, 1).astype(int)
        ops = ["input", *stream.choice(["conv3x3-bn-relu", "conv1x1-bn-relu", "maxpool3x3"], 5).tolist(), "output"]
        spec, graph = api.ModelSpec(matrix, ops), graph_of({"matrix": matrix, "ops": ops}, "nasbench101")
        exists = Cells101().is_valid(spec)
        same = graph is not None and np.array_equal(graph.adjacency, spec.matrix)
        agreed, existing = agreed + (same if exists else graph is None), existing + exists
    return {"row": rows[0], "agreed": int(agreed), "exist": existing}


def read() -> dict[str, int]:
    """Architecture objects of the other spaces."""
    (spaces,) = compat.load("naslib.search_spaces")
    kinds = {
        "nasbench101": spaces.NasBench101SearchSpace,
        "nasbench301": spaces.NasBench301SearchSpace,
        "transbench101_micro": spaces.TransBench101SearchSpaceMicro,
        "transbench101_macro": spaces.TransBench101SearchSpaceMacro,
    }
    counts = {}
    for name, kind in kinds.items():
        graphs = []
        space = kind()
        space.instantiate_model = False
        assert space.get_type() == name
        for fake in sampled(name, 10):
            if name == "nasbench101":
                space.set_spec(fake.spec)
                assert graph_of(space.get_hash(), name) == graph_of(space, name)
            elif name == "nasbench301":
                space.sample_random_architecture()
            else:
                space.op_indices = None
                space.sample_random_architecture()
            graphs.append(graph_of(space, name))
        counts[name] = sum(graph is not None for graph in graphs)
    return counts


TABLE = {"nb201_data": NASBench201Table(OPS, ACCURACIES, "cifar10-valid")}


def main(folder: Path) -> None:
    logging.disable(logging.INFO)
    rows = evaluated(folder)
    written = json.loads((folder / "errors.json").read_text())
    register("nnformer", **FAST)
    count, unequal = compared()
    (ensembles,) = compat.load("naslib.predictors.ensemble")
    (gcn,) = ensembles.Ensemble(predictor_type="gcn", num_ensemble=1, ss_type="nasbench201").get_ensemble()
    left_over = [name for name in compat.PEERS if type(sys.modules.get(name)).__module__.startswith("naslib_ext")]
    results = {
        "evaluator": rows,
        "errors_json": len(written),
        "nasbench201_compared": count,
        "nasbench201_unequal": unequal,
        "nasbench101": nasbench101(folder),
        "read": read(),
        "search": {name: searched(name) for name in ("Bananas", "Npenas", "BasePredictor")},
        "gcn": evaluated(folder, predictor=gcn, **SINGLE)[0],
        "left_over": left_over + ["collections.Iterable"] * hasattr(collections, "Iterable"),
    }
    (folder / "found.json").write_text(json.dumps(results))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
