"""Where images come from, the processes that read them, and what timm's loader is asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from timm.data import create_loader

from tests.timm_ext.running import SPACE, config, train
from tests.timm_ext.trained_by_workers import plain_images
from timm_ext import building
from timm_ext.building import make_loader
from timm_ext.host import HOST
from timm_ext.train import Trainer
from timm_ext.workers import Workers


def test_a_folder_with_timms_splits(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trainer = train(folder, tmp_path / "run", val_count=0, batch_size=8, updates=2)
    assert (len(trainer.train_set), len(trainer.valid_set)) == (20, 8)
    assert f"20 images to train on, 8 to validate on: those of {folder / 'validation'}" in capsys.readouterr().err
    supernet = HOST.open(tmp_path / "run" / "last.pt")
    found = supernet.evaluate(SPACE.smallest())
    assert found["loss"] == pytest.approx(trainer.history[-1]["subnets"]["smallest"]["loss"], rel=1e-4)


def test_processes_that_read_images(npz: Path, tmp_path: Path) -> None:
    with plain_images():
        alone = train(npz, tmp_path / "alone")
        kept = train(npz, tmp_path / "kept", workers=1, persistent_workers=True)
    assert kept.history[0] == alone.history[0] and len(kept.history) == 2
    loader = make_loader(kept.config, kept.model, kept.train_set, training=True, workers=kept.workers)
    assert loader.persistent_workers and not hasattr(loader, "mean")  # timm's prefetcher is for CUDA
    validating = make_loader(kept.config, kept.model, kept.valid_set, training=False, workers=kept.workers)
    assert not validating.persistent_workers
    on_cuda = Workers(torch.device("cuda"))
    made: list[dict[str, Any]] = []
    for changes in ({}, {"no_prefetcher": True}, {"pin_mem": True}):
        settings = config(npz, tmp_path / "kept", **changes)
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr("timm_ext.building.create_loader", lambda *_, **given: made.append(given))
            make_loader(settings, kept.model, kept.train_set, training=True, workers=on_cuda)
    assert [(each["use_prefetcher"], each["pin_memory"]) for each in made] == [
        (True, False), (False, False), (True, True),
    ]  # fmt: skip
    assert {each["device"] for each in made} == {torch.device("cuda")}


def test_timms_prefetcher_gives_the_same_images(npz: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On the CPU, where timm's prefetcher runs too and we do not take it."""
    trainer = Trainer(config(npz, tmp_path / "run", reprob=0.0))
    found = []
    for prefetched in (False, True):
        with plain_images(), pytest.MonkeyPatch.context() as inner:
            plain = building.create_loader  # type: ignore[attr-defined]
            given = {"use_prefetcher": prefetched}
            inner.setattr(building, "create_loader", lambda *a, p=plain, g=given, **k: p(*a, **{**k, **g}))
            found.append(next(trainer.passes.epoch(0, 3)))
    for one, other in zip(found[0][:2], found[1][:2], strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-5)
    monkeypatch.setattr(
        building, "create_loader", lambda *a, p=create_loader, **k: p(*a, **{**k, "use_prefetcher": True})
    )
    rough = train(npz, tmp_path / "rough", mixup=0.3, cutmix=0.3, reprob=0.3, sampling="sandwich")
    assert len(rough.history) == 2
