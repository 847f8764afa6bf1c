"""The learning curve of a training that stops and goes on."""

from __future__ import annotations

from pathlib import Path

from nas_core.predictor.training.checkpoint import LearningCurve


def test_a_continued_training_keeps_its_beginning(tmp_path: Path) -> None:
    first = LearningCurve(tmp_path / "c.json")
    for step in range(1, 8):
        first.add(step, 1 / step)
    assert not first.kept.exists()
    first.keep()
    second = LearningCurve(tmp_path / "c.json")
    for step in range(6, 11):  # from a checkpoint after step 5
        second.add(step, 2 / step)
    assert second.steps == list(range(1, 11))
    assert second.losses == [*(1 / s for s in range(1, 6)), *(2 / s for s in range(6, 11))]
    anew = LearningCurve(tmp_path / "c.json")
    anew.add(1, 5.0)
    assert anew.to_dict() == {"step": [1], "loss": [5.0]}
    anew.remove()
    assert not list(tmp_path.iterdir())


def test_pictures_show_means_by_member(tmp_path: Path) -> None:
    curve = LearningCurve(tmp_path / "c.json")
    for step in range(1, 401):
        curve.add(step, float(step))
    first, second = curve.thinned(2, points=50)
    assert len(first[0]) == len(second[0]) == 50
    assert first[0][0] == first[1][0] == 2.5 and second[0][0] == 2.5 and second[1][0] == 202.5
    assert LearningCurve(tmp_path / "c.json").thinned() == [([], [])]


def test_losses_are_kept_with_the_checkpoint(tmp_path: Path) -> None:
    """A process that is killed goes on from its checkpoint, and the curve has every step before it."""
    checkpoint = tmp_path / "p.unfinished"
    first = LearningCurve(tmp_path / "c.json", checkpoint)
    for step in range(1, 47):
        if step == 46:  # the state after 45 steps
            (tmp_path / "p.unfinished.0.safetensors").write_bytes(b"state")
        first.add(step, float(step))
    second = LearningCurve(tmp_path / "c.json", checkpoint)
    for step in range(46, 61):
        second.add(step, float(step))
    assert second.steps == list(range(1, 61))
