"""Workers that train together share a teacher, and its cache."""

from __future__ import annotations

from pathlib import Path

from nas_core.files import read_json
from tests.timm_ext.trained.tiny import save, vit
from tests.timm_ext.workers_started import start
from timm_ext import elastic


def test_two_workers_keep_and_read_what_the_teacher_said(npz: Path, tmp_path: Path) -> None:
    teacher = save(vit(), tmp_path / "trained.pt")
    elastic(teacher, out=tmp_path / "supernet.pt")
    given = ["--data", npz, "--val-count", 24, "--init", tmp_path / "supernet.pt", "--teacher", teacher,
             "--teacher-cache", tmp_path / "kept", "--epochs", 1, "--warmup-epochs", 0, "--batch-size", 8,
             "--sampling", "sandwich"]  # fmt: skip
    for name in ("first", "second"):
        options = [*map(str, given), "--output", str(tmp_path / name)]
        for code, _, said in start(2, "-m", "timm_ext.train", *options):
            assert code == 0, said
    first, second = (read_json(tmp_path / name / "metrics.json") for name in ("first", "second"))
    assert first == second and len(first) == 1
    flags = tmp_path / "kept" / "epoch-0001" / "samples.npy"
    assert flags.read_bytes().endswith(b"\x01" * 6)  # of three updates, on each worker
