"""What needs no extra: a search with each package of the core in use, and what it writes read again."""

import subprocess

import numpy as np

from nas_core.graph import nasbench201_string
from nas_core.report import write_report
from nas_core.search import EvolutionConfig, HATEvolution, RankNAS, RankNASConfig, search
from nas_core.space import Choice, SearchSpace, load_space, save_space
from naslib_ext import AccuracyPredictor

depth, width = Choice.make("layers", [1, 2, 3, 4]), Choice.make("width", [16, 32, 64], per="layers", layers=4)
save_space(SearchSpace("toy", [depth, width, Choice.make("activation", ["relu", "gelu"])]), "toy.yaml")
space = load_space("toy.yaml")


def error(architecture):
    return {"loss": 1 / (1 + sum(width**0.5 for width in architecture["width"]))}


found = search(HATEvolution(space, config=EvolutionConfig(iterations=2, population=16)), error, "run")
assert found.best is not None and found.best.architecture["layers"] == 4
ranked = search(
    RankNAS(space, config=RankNASConfig(samples=20, rounds=1, per_round=4, candidates=50, generations=2)), error
)
assert ranked.best is not None
assert write_report("run").stat().st_size > 10_000

rng = np.random.default_rng(0)
cells = rng.integers(5, size=(40, 6))
strings, accuracies = [nasbench201_string(cell) for cell in cells], 75 + np.array([0, 1, 1.4, 2, 0.4])[cells].sum(1)
trees = AccuracyPredictor("nasbench201")
trees.fit(strings[:30], accuracies[:30])
assert np.corrcoef(trees.query(strings[30:]), accuracies[30:])[0, 1] > 0.3

subprocess.run(["nas-ext", "lab", "space", "show", "hat_small"], check=True)
subprocess.run(["nas-ext", "search", "--help"], check=True)
