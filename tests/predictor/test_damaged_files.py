"""Predictors with single flipped bits: refused in one line or equal, and no crash inside LightGBM.

The loads run in a process of their own, which a crash would end and an endless loop would keep.
"""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from nas_core.errors import DataError
from nas_core.predictor import NNFormerPredictor
from nas_core.predictor.statistics.boosted_trees import BoostedTrees
from tests.predictor.graphs import TINY, random_graphs

ROOT = Path(__file__).resolve().parents[2]
WAIT_S = 500
"""Long enough for any machine: only an endless loop takes longer."""


def flipped(content: bytes, count: int, seed: int) -> Iterator[bytes]:
    stream = random.Random(seed)
    for _ in range(count):
        changed = bytearray(content)
        changed[stream.randrange(len(content))] ^= 1 << stream.randrange(8)
        yield bytes(changed)


def outcomes(content: bytes, count: int, load: Callable[[bytes], str]) -> dict[str, int]:
    found: Counter[str] = Counter()
    for changed in flipped(content, count, seed=count):
        try:
            found[load(changed)] += 1
        except DataError as error:
            assert "\n" not in str(error)
            found["refused"] += 1
    return dict(found)


def of_predictors(path: str) -> dict[str, int]:
    """Of a file with a checksum."""
    graphs, whole = random_graphs((4, 5, 6), seed=9), NNFormerPredictor.load(path)
    expected, place = whole.predict(graphs), Path(path).with_name("flipped.safetensors")

    def load(content: bytes) -> str:
        place.write_bytes(content)
        made = NNFormerPredictor.load(place)
        same = np.array_equal(made.predict(graphs), expected) and made.info == whole.info
        return "equal" if same and made.recipe == whole.recipe else "different"

    return outcomes(Path(path).read_bytes(), 120, load)


def of_trees(path: str) -> dict[str, int]:
    """Of what a file without a checksum holds; other numbers in the right places are another model."""
    statistics = np.random.default_rng(0).normal(size=(50, 5))

    def load(content: bytes) -> str:
        made = BoostedTrees.from_tensor(torch.tensor(list(content), dtype=torch.uint8), 5)
        return "read" if made.predict(statistics).shape == (50,) else "broken"

    return outcomes(Path(path).read_bytes(), 1500, load)


def in_a_process(name: str, path: Path) -> dict[str, int]:
    program = f"import json, sys\nfrom {__name__} import {name} as f\nprint(json.dumps(f(sys.argv[1])))"
    command = [sys.executable, "-X", "faulthandler", "-c", program, str(path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=WAIT_S)
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, int] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("saved") / "p.safetensors"
    graphs = random_graphs((4, 5, 6, 7) * 5, seed=2)
    settings = {**TINY, "epochs": 1}
    NNFormerPredictor("best", processes=1, trees=1, **settings).fit(graphs, np.arange(20.0)).save(path)
    return path


@pytest.fixture(scope="module")
def text() -> str:
    import lightgbm

    stream = np.random.default_rng(1)
    values = stream.normal(size=(60, 5))
    settings = {"objective": "l2", "min_data_in_leaf": 3, "num_leaves": 7, "verbose": -1, "num_threads": 1}
    made: str = lightgbm.train(settings, lightgbm.Dataset(values, values[:, 1] ** 2), 4).model_to_string()
    return made


def test_flipped_bits_of_a_predictor(saved: Path) -> None:
    found = in_a_process("of_predictors", saved)
    assert found.keys() <= {"refused", "equal"} and found["refused"] > 110, found


def test_flipped_bits_of_trees(text: str, tmp_path: Path) -> None:
    (tmp_path / "trees.txt").write_text(text.partition("end of trees")[0] + "end of trees\n")
    found = in_a_process("of_trees", tmp_path / "trees.txt")
    assert found.keys() == {"refused", "read"} and found["refused"] > 600, found


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("left_child=1", "left_child=0", "tree 0: a node or a leaf hangs in several places"),
        ("num_leaves=7", "num_leaves=999999999", "values for 999999999 leaves"),
        ("num_leaves=7", "num_leaves=0", "values for 0 leaves"),
        ("split_feature=1", "split_feature=7", "names others than the 5 numbers"),
        ("split_feature=1", "split_feature=-1", "names others than the 5 numbers"),
        ("decision_type=2", "decision_type=1", "no comparison with a threshold"),
        ("num_cat=0", "num_cat=1", "no constants behind thresholds"),
        ("is_linear=0", "is_linear=1", "no constants behind thresholds"),
        ("max_feature_idx=4", "max_feature_idx=5", "names of 5 numbers"),
        ("num_class=1", "num_class=3", "num_class is '3'; expected 1"),
        ("label_index=0", "label_index=0\nlabel_index=0", "stands there twice"),
        ("shrinkage=0.1", "shrinkage=nan", "shrinkage holds what is no number"),
        ("Tree=1", "Tree=7", "it is called 'Tree=7'"),
        ("tree_sizes=", "tree_sizes=9 ", "5 trees were written; there are 4"),
        ("leaf_value=", "leaf_valve=", "is unknown"),
        ("end of trees", "end of threes", "to 'end of trees'"),
        ("num_cat=0\n", "num_cat=0\x0b", "num_cat holds what is no whole"),
        ("", "\xe4", "they are no text"),
    ],
)
def test_what_is_looked_at(text: str, old: str, new: str, said: str) -> None:
    damaged = text.replace(old, new, 1)
    if len(damaged) != len(text) and old != "tree_sizes=":  # by somebody who knows the format
        trees = re.split(r"\n(?=Tree=)", damaged.split("\nend of trees\n")[0])[1:]
        sizes = " ".join(str(len(tree) + 1) for tree in trees)
        damaged = damaged.replace(text.split("tree_sizes=")[1].split("\n")[0], sizes)
    with pytest.raises(DataError, match="cannot be read") as caught:
        BoostedTrees.from_tensor(torch.tensor(list(damaged.encode()), dtype=torch.uint8), 5)
    assert said in str(caught.value)


def test_circles_below_the_root(text: str) -> None:
    """Each node hangs in one place, but two of them in one another, where a wrong number once led for ever."""
    tree = text.split("Tree=1")[0]
    left = [int(x) for x in tree.split("left_child=")[1].split("\n")[0].split()]
    right = [int(x) for x in tree.split("right_child=")[1].split("\n")[0].split()]
    inner = [(side, place) for side in (left, right) for place, child in enumerate(side) if child > 0]
    (a, first), (b, second) = inner[0], inner[-1]
    a[first], b[second] = b[second], a[first]
    wrong = any(child > 0 and child <= node for side in (left, right) for node, child in enumerate(side))
    lines = {"left_child": left, "right_child": right}
    damaged = text
    for name, values in lines.items():
        old = tree.split(f"{name}=")[1].split("\n")[0]
        damaged = damaged.replace(f"{name}={old}", f"{name}={' '.join(map(str, values))}", 1)
    assert wrong and len(damaged) == len(text)
    with pytest.raises(DataError, match="a node hangs below itself"):
        BoostedTrees.from_text(damaged)


def test_trees_of_other_statistics(text: str) -> None:
    with pytest.raises(DataError, match="they read 5 numbers; expected 6"):
        BoostedTrees.from_text(text, 6)
    with pytest.raises(DataError, match=r"torch\.float32 of shape \(3,\); expected bytes"):
        BoostedTrees.from_tensor(torch.zeros(3))
