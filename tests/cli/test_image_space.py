"""The commands on a space of images: measured, fitted, searched under a limit in ms by NN-Former's ranker, reported."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nas_core.cli import main
from nas_core.space import Architecture, save_space
from nas_core.space.image import image_space
from nas_core.supernet import Supernet

SPACE = image_space(
    "tiny_images",
    layers=(1, 2, 3),
    embed_dims=(8, 32),
    ffn_dims=(8, 64),
    heads=(1, 4),
    head_dim=8,
    image_size=16,
    patch_size=4,
    attention=("softmax", "linear"),
    relative_clip=3,
)


class ToySupernet(Supernet):
    """Wider feed-forward layers are better; its classes are more than those that are measured."""

    space, task = SPACE, {"kind": "image", "classes": 20, "height": 16, "width": 16}

    def evaluate(self, architecture: Architecture, report: object = None) -> dict[str, float]:
        return {"loss": 5.0 - sum(architecture.numbers("ffn_dim")) / 1000, "top1": 50.0}


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[str, str]:
    assert main([str(part) for part in arguments]) == 0, capsys.readouterr().err
    return capsys.readouterr()


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("images")
    save_space(SPACE, folder / "tiny.yml")
    arguments = ["--space", folder / "tiny.yml", "--out", folder / "lat.jsonl", "--samples", 24, "--repeats", 3]
    assert main(["latency", "collect", *map(str, arguments), "--workload", "batch=2", "--workload", "classes=5"]) == 0
    assert main(["latency", "fit", "--data", str(folder / "lat.jsonl"), "--out", str(folder / "lat.json")]) == 0
    return folder


def test_measurements_say_the_workload(measured: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [json.loads(line) for line in (measured / "lat.jsonl").read_text().splitlines()]
    workload = {"kind": "image", "batch": 2, "classes": 5, "channels": 3, "activation": "relu"}
    assert lines[0]["settings"]["workload"] == workload
    assert all(line["network_ms"] > 0 for line in lines[1:]) and len(lines) == 25
    SPACE.largest().save(measured / "a.json")
    out, _ = run(capsys, "latency", "check", "--model", measured / "lat.json", "--architecture", measured / "a.json")
    assert "  network" in out and "measured, as in the fit" in out


def test_a_search_by_nn_former_ends_in_measured_finalists(
    measured: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], caplog: Any
) -> None:
    monkeypatch.setattr("nas_core.supernet.host.open_supernet", lambda path, **options: ToySupernet())
    (measured / "checkpoint").write_bytes(b"weights")
    slowest = max(json.loads(line).get("latency_ms", 0) for line in (measured / "lat.jsonl").read_text().splitlines())
    search = [
        "--checkpoint",
        measured / "checkpoint",
        "--latency-model",
        measured / "lat.json",
        "--limit",
        f"latency_ms={slowest}",
    ]
    small = [
        "--strategy",
        "ranknas",
        "--set",
        "samples=12",
        "--set",
        "rounds=1",
        "--set",
        "per_round=4",
        "--finalists",
        3,
    ]
    out, _ = run(capsys, "search", *search, "--out", measured / "run", *small)
    assert "measured (ms)" in out
    for finalist in json.loads((measured / "run" / "finalists.json").read_text())["finalists"]:
        assert finalist["measured"]["latency_ms"] > 0 and finalist["metrics"]["latency_ms"] <= slowest
        assert {"params_m", "flops_g", "top1"} <= finalist["metrics"].keys()
    assert "finalists are measured with classes 5, but the supernet has 20" in caplog.text
    run(capsys, "report", measured / "run")
    assert "tiny_images" in (measured / "run" / "report.html").read_text()


def test_the_table_shows_every_layer(measured: Path, capsys: pytest.CaptureFixture[str]) -> None:
    SPACE.largest().save(measured / "b.json")
    out, _ = run(capsys, "report", "architecture", measured / "b.json")
    lines = [line.split() for line in out.splitlines()]
    assert ["side", "layer", "ffn_dim", "heads", "attention"] in lines
    assert ["network", "3", "64", "4", "softmax"] in lines
