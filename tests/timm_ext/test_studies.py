"""Studies of image supernets: routers, and the trainings that they start."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from nas_core.cli import main
from nas_core.files.reading import read_json
from tests.timm_ext.running import SPACE, config
from timm_ext.options import TrainConfig, parse
from timm_ext.standalone import Origin, settings

pytestmark = pytest.mark.usefixtures("warm_programs")


def study(name: str, run: Path, out: Path, *assignments: str) -> dict[str, Any]:
    options = [part for assignment in assignments for part in ("--set", assignment)]
    assert main(["lab", "study", name, "--checkpoint", str(run / "last.pt"), "--out", str(out), *options]) == 0
    return read_json(out / f"{name}.json")


def test_routing_of_a_checkpoint(run: Path, tmp_path: Path) -> None:
    routing = study("routing", run, tmp_path, "random=1")
    assert len(routing["rows"]) == 6 and all(row["distance"] > 0 for row in routing["rows"])


def test_gap_trains_standalone_networks(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gap = study("gap", run, tmp_path, "architectures=3", "train.epochs=1", "train.lr=0.001")
    assert len(gap["rows"]) == 3
    written = read_json(next((tmp_path / "standalone").iterdir()) / "settings.json")
    assert (written["epochs"], written["lr"], written["mos"]) == (1, 0.001, "")
    arguments = ["lab", "study", "gap", "--checkpoint", str(run / "last.pt"), "--out", str(tmp_path / "b"), "--set"]
    for wrong, message in (("train.epoch=3", "'epochs'"), ("train.output=3", "output")):
        assert main([*arguments, wrong]) == 2
        assert message in capsys.readouterr().err


def standalone(
    folder: Path, trained: TrainConfig, data: Path | None = None, workers: int = 1, **changes: str
) -> TrainConfig:
    """The settings of a network of a supernet with these settings."""
    state: dict[str, Any] = {"train": asdict(trained), "worker_count": workers}
    origin = Origin(state, folder / "last.pt", None if data is None else str(data), SPACE)
    return parse(settings(origin, SPACE.smallest(), folder, changes))


def test_epochs_updates_and_batches_of_standalone_networks(npz: Path, tmp_path: Path) -> None:
    trained = config(npz, tmp_path / "run", updates=500, warmup_updates=50, grad_accum_steps=2)
    for changes, expected in (
        ({}, (2, 500, 50, 0)),
        ({"epochs": "20"}, (20, 0, 0, 0)),
        ({"updates": "60"}, (2, 60, 50, 0)),
        ({"warmup_epochs": "1"}, (2, 500, 0, 1)),
    ):
        own = standalone(tmp_path, trained, **changes)
        assert (own.epochs, own.updates, own.warmup_updates, own.warmup_epochs) == expected
    assert standalone(tmp_path, trained, workers=4).grad_accum_steps == 8  # one process for four
    assert standalone(tmp_path, trained, workers=4, grad_accum_steps="3").grad_accum_steps == 3


def test_images_of_standalone_networks(npz: Path, folder: Path, tmp_path: Path) -> None:
    train, validation, other = folder / "train", folder / "validation", tmp_path / "evaluated"
    trained = config(train, tmp_path / "run", val_data=str(validation))
    for data, expected in ((None, validation), (other, other)):
        own = standalone(tmp_path, trained, data)
        assert (own.data, own.val_data) == (str(train.resolve()), str(expected.resolve()))
    gone = config(tmp_path / "gone" / "train", tmp_path / "run", val_data=str(tmp_path / "gone" / "val"))
    own = standalone(tmp_path, gone, folder)  # all of it has moved: train/ is trained on, validation/ evaluated
    assert own.data == own.val_data == str(folder.resolve())
    for data in (folder, tmp_path / npz.name):  # a training split, and the same file elsewhere
        own = standalone(tmp_path, config(npz, tmp_path / "run", val_count=0), data)
        assert (own.data, own.val_data) == (str(data.resolve()), "")
    for trained in (config(folder, tmp_path, val_count=0), config(npz, tmp_path, val_data=str(folder))):
        assert standalone(tmp_path, trained, seed="2").seed == 2  # its images do not depend on the seed
