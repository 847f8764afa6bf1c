"""Logs of a training, by whichever host reads them."""

from __future__ import annotations

from pathlib import Path

import pytest

from nas_core.errors import DataError, MissingHostError
from nas_core.supernet import Host, curves
from nas_core.supernet.curves import TrainingCurves, read_curves


class Toy(Host):
    """A host whose logs begin with its name."""

    def __init__(self, name: str) -> None:
        self.name = name

    def training_logs(self, checkpoint: Path) -> list[Path]:
        return [checkpoint.parent / "absent", checkpoint.parent / f"{self.name}.log"]

    def training_curves(self, log: Path) -> TrainingCurves | None:
        if (text := log.read_text()) == "refused":
            raise PermissionError(13, "Permission denied")
        if not text.startswith(self.name):
            return None
        return TrainingCurves(log, "updates", {"loss": {"training": ([1.0], [2.0])}})


@pytest.fixture(autouse=True)
def hosts(monkeypatch: pytest.MonkeyPatch) -> None:
    results = [("none", MissingHostError("absent")), ("old", Host()), ("one", Toy("one")), ("two", Toy("two"))]
    monkeypatch.setattr(curves, "each_host", lambda: iter(results))


def test_a_log_beside_the_checkpoint_is_found(tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoint.pt"
    assert read_curves(checkpoint) is None
    (tmp_path / "one.log").write_text("of another program")
    (tmp_path / "two.log").write_text("two: 1 2")
    result = read_curves(checkpoint)
    assert result is not None and result.source == tmp_path / "two.log"


def test_a_log_that_is_given(tmp_path: Path) -> None:
    (tmp_path / "two.log").write_text("two: 1 2")
    (tmp_path / "x.log").write_text("two: 1 2")
    result = read_curves(tmp_path / "checkpoint.pt", tmp_path / "x.log")
    assert result is not None and result.source == tmp_path / "x.log"
    with pytest.raises(DataError, match=r"absent\.log does not exist"):
        read_curves(tmp_path / "checkpoint.pt", tmp_path / "absent.log")
    (tmp_path / "x.log").write_text("else")
    with pytest.raises(DataError, match=r"x\.log is not a known training log"):
        read_curves(tmp_path / "checkpoint.pt", tmp_path / "x.log")
