"""Cosines of gradients, against a network whose gradients are known by hand."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch

from nas_core.errors import ConfigError
from nas_core.space import Architecture
from nas_core.studies import STUDIES, Subject
from nas_core.studies.base import chosen, drawn, middle, some_batches
from nas_core.studies.conflict import ConflictConfig, gradient_cosine, gradient_of, used_weights
from tests.studies.supernets import SPACE, LinearSupernet


def test_the_cosine_of_given_gradients() -> None:
    first, second = [torch.tensor([1.0, 0.0]), torch.tensor([2.0])], [torch.tensor([0.0, 1.0]), torch.tensor([2.0])]
    assert gradient_cosine(first, second) == pytest.approx(4 / 5)
    assert gradient_cosine(first, first) == pytest.approx(1.0)
    masks = [torch.tensor([True, True]), torch.tensor([False])]
    assert gradient_cosine(first, second, masks) == 0.0
    assert gradient_cosine(first, [torch.zeros(2), torch.zeros(1)]) == 0.0


def test_gradients_and_used_weights_of_a_subnet() -> None:
    supernet = LinearSupernet()
    two = Architecture({"width": 2})
    (gradient,) = gradient_of(supernet, two, supernet.batches()[0])
    assert gradient.tolist() == [6.0, 6.0, 0.0]  # 2 (1 + 2 - 0) x
    (used,) = used_weights(supernet.network, two)
    assert used.tolist() == [True, True, False]


def test_the_study_is_the_mean_over_batches(tmp_path: Path) -> None:
    subject = Subject("line", tmp_path / "line.pt", LinearSupernet())
    result = STUDIES.get("conflict").run([subject], ConflictConfig(random=0), tmp_path)
    rows = {row["architecture"]: row for row in result.rows}
    # Largest: 2 (-3) (1, 1, -2) and 2 (4) (2, 0, 1); smallest: 2 (1) (1) and 2 (1) (2). Shared is the first weight.
    assert rows["largest"]["cosine"] == pytest.approx(1.0) and rows["largest"]["opposed"] == 0
    assert rows["smallest"]["cosine"] == pytest.approx((-1 + 1) / 2)
    assert rows["smallest"]["deviation"] == pytest.approx(1.0)
    assert rows["smallest"]["opposed"] == pytest.approx(0.5)
    assert rows["smallest"]["cosine_all"] == pytest.approx((-1 / math.sqrt(6) + 2 / math.sqrt(5)) / 2)
    assert rows["smallest"]["shared"] == pytest.approx(1 / 3)
    assert result.summary[0]["smallest"] == pytest.approx(0.0)


def test_batches_are_taken_from_all_over_the_data() -> None:
    supernet = Keyed("")
    supernet.batches = lambda: list(range(100))  # type: ignore[method-assign,assignment,return-value]
    assert list(some_batches(supernet, 1)) == [50]
    assert list(some_batches(supernet, 4)) == [12, 37, 62, 87]
    assert list(some_batches(supernet, 200)) == list(range(100))
    supernet.batches = lambda: iter(range(100))  # type: ignore[method-assign,assignment,return-value]
    assert list(some_batches(supernet, 3)) == [0, 1, 2]


def test_architectures_that_are_compared() -> None:
    assert middle(SPACE) == Architecture({"width": 2})
    result = chosen(SPACE, ConflictConfig(random=5))
    assert list(result) == ["smallest", "middle", "largest"]  # there are no others
    assert len(drawn(SPACE, 2, 0)) == 2 and len(drawn(SPACE, 9, 0, [SPACE.smallest()])) == 2


def test_files_are_the_architectures(tmp_path: Path) -> None:
    SPACE.largest().save(tmp_path / "mine.json")
    assert chosen(SPACE, ConflictConfig(arch=(tmp_path / "mine.json",))) == {"mine": SPACE.largest()}
    with pytest.raises(ConfigError, match="expected at least 2"):
        chosen(SPACE, ConflictConfig(arch=(tmp_path / "mine.json",)), at_least=2)


class Keyed(LinearSupernet):
    """It says what it is evaluated on."""

    def __init__(self, key: str) -> None:
        super().__init__()
        self.key = key

    def examples_key(self) -> str:
        return self.key
