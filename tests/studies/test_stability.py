"""The same search with several seeds: a certain best, chance, limits, and a run that goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from nas_core.space import Architecture, get_space
from nas_core.studies import STUDIES, Subject
from nas_core.studies.stability import StabilityStudyConfig
from tests.toys import ToySupernet

SPACE = get_space("vit_cifar10_small")
SMALL = {"iterations": "2", "population": "9", "parents": "3"}


def score(architecture: Architecture) -> dict[str, float]:
    """Larger is better."""
    return {"loss": 9.0 - float(SPACE.encode(architecture).sum())}


@pytest.fixture
def subject(tmp_path: Path) -> Subject:
    (tmp_path / "supernet.pt").write_bytes(b"weights")
    return Subject("toy", tmp_path / "supernet.pt", ToySupernet(SPACE, score))


def test_each_seed_has_its_own_best_and_the_figures_are_theirs(subject: Subject, tmp_path: Path) -> None:
    config = StabilityStudyConfig(seeds=3, set=SMALL, max_params_m=0.5)
    result = STUDIES.get("stability").run([subject], config, tmp_path)
    losses = [row["loss"] for row in result.rows]
    mean = sum(losses) / 3
    (figures,) = result.summary
    assert figures["mean"] == pytest.approx(mean) and figures["range"] == pytest.approx(max(losses) - min(losses))
    assert figures["deviation"] == pytest.approx((sum((loss - mean) ** 2 for loss in losses) / 2) ** 0.5)
    assert len(set(losses)) > 1 and all(row["params_m"] <= 0.5 for row in result.rows)


def test_a_finished_study_evaluates_nothing_again(subject: Subject, tmp_path: Path) -> None:
    config = StabilityStudyConfig(seeds=2, set=SMALL)
    first = STUDIES.get("stability").run([subject], config, tmp_path)
    repeated = Subject("toy", subject.path, ToySupernet(SPACE, score))
    assert STUDIES.get("stability").run([repeated], config, tmp_path).rows == first.rows
    assert isinstance(repeated.supernet, ToySupernet) and not repeated.supernet.evaluated
