"""Two workers are one with twice the batch; what they agree on, and how they end."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from nas_core.errors import ConfigError
from nas_core.files.reading import read_json
from tests.timm_ext.running import config
from tests.timm_ext.trained_by_workers import trained
from tests.timm_ext.workers_started import start
from timm_ext.checkpoint import read_checkpoint

TASKS: dict[str, tuple[dict[str, Any], int]] = {
    "sandwich": ({"sampling": "sandwich", "mos": "layer", "opt": "sgd", "ema": 0.9, "clip_grad": 0.5}, 0),
    "neuron": ({"mos": "neuron", "opt": "sgd", "grad_accum_steps": 2}, 0),
    "resumed": ({"seed": 3}, 4),
}
"""Changed settings, and the update before which the run is interrupted."""


def settings(npz: Path, output: Path, **changes: Any) -> dict[str, Any]:
    return asdict(config(npz, output, **{"batch_size": 8, "val_count": 23, **changes}))


@pytest.fixture(scope="module")
def runs(npz: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of what two workers did."""
    folder = tmp_path_factory.mktemp("workers")
    tasks = {name: (settings(npz, folder / name, **task), stop) for name, (task, stop) in TASKS.items()}
    (folder / "tasks.json").write_text(json.dumps(tasks))
    for code, _, errors in start(2, "-m", "tests.timm_ext.trained_by_workers", str(folder / "tasks.json"), str(folder)):
        assert code == 0, errors
    return folder


def result(runs: Path, name: str, rank: int) -> dict[str, Any]:
    content: dict[str, Any] = torch.load(runs / f"{name}.{rank}.pt", weights_only=True)
    return content


@pytest.mark.parametrize("name", TASKS)
def test_two_workers_are_one_with_twice_the_batch(runs: Path, npz: Path, tmp_path: Path, name: str) -> None:
    task, _ = TASKS[name]
    single = trained(settings(npz, tmp_path / "run", **task, batch_size=16))
    first, second = (result(runs, name, rank) for rank in (0, 1))
    assert single["seen"] == first["seen"] == second["seen"]
    assert single["untouched"] == first["untouched"]
    for key, weights in first["state"].items():
        for tensor, value in weights.items():
            assert torch.equal(value, second["state"][key][tensor])
            # Adam makes steps of 0.01 out of any gradient, also where rounding alone keeps it from 0.
            torch.testing.assert_close(value, single["state"][key][tensor], atol=2e-4, rtol=1e-3)
    assert first["history"] == second["history"]
    for mine, alone in zip(first["history"], single["history"], strict=True):
        assert mine["train_loss"] == pytest.approx(alone["train_loss"], rel=1e-4)
        for subnet, metrics in alone["subnets"].items():
            assert mine["subnets"][subnet] == pytest.approx(metrics, rel=1e-4)


def test_the_first_worker_writes(runs: Path) -> None:
    folder = runs / "resumed"
    assert {path.name for path in folder.iterdir()} == {"best.pt", "last.pt", "metrics.json", "settings.json"}
    assert read_checkpoint(folder / "last.pt")["worker_count"] == 2
    assert read_json(folder / "metrics.json") == result(runs, "resumed", 1)["history"]
    with pytest.raises(
        ConfigError, match="contains a run of 2 workers, but this run has 1; start 2 workers with torchrun"
    ):
        trained(read_json(folder / "settings.json"))


def command(npz: Path, output: Path, **changes: Any) -> list[str]:
    fields = {"lr": 0.01, "warmup_epochs": 0, "search_space": settings(npz, output)["search_space"], **changes}
    options = [word for name, value in fields.items() for word in (f"--{name.replace('_', '-')}", str(value))]
    base = ["--data", str(npz), "--output", str(output), "--model", "mformer_cifar10_small_supernet"]
    return ["-m", "timm_ext.train", *base, "--val-count", "23", "--batch-size", "8", *options]


def test_an_error_of_one_worker_ends_all_with_its_line(npz: Path, tmp_path: Path) -> None:
    with np.load(npz) as table:
        arrays = dict(table)
    start_of, end = arrays["offset"][40:42]
    arrays["data"][start_of:end] = 0
    np.savez(tmp_path / "hole.npz", **arrays)
    ended = start(2, *command(tmp_path / "hole.npz", tmp_path / "run", epochs=9))
    assert [code for code, _, _ in ended] == [2, 2]
    lines = [line for _, _, text in ended for line in text.splitlines() if "training images" not in line]
    assert [line for line in lines if line.startswith("image 40 of")], lines
    assert all(
        line.startswith(("image 40 of", "another worker ended", "epoch ")) for line in lines if "[W" not in line
    ), lines


def test_all_workers_diverge_together_and_one_says_so(npz: Path, tmp_path: Path) -> None:
    (first, _, errors), (second, _, other_errors) = start(2, *command(npz, tmp_path / "run", lr=1e30, opt="sgd"))
    assert (first, second) == (2, 2)
    assert "the loss is nan at update" in errors.splitlines()[-1]
    assert "Traceback" not in errors + other_errors and "the loss is" not in other_errors
