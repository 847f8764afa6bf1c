"""One small valid file of every kind, made once."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from nas_core.cli import main
from nas_core.graph import Graphs
from nas_core.graph.onnx.reader import read_onnx
from nas_core.latency.by_genes.dataset import COLUMNS
from nas_core.latency.by_graph.data import NetworkLatencies, last_of_each
from nas_core.space import save_space
from tests.cli.searching import SPACE, latency_model, score
from tests.predictor.graphs import random_graphs, sizes_of_operations
from tests.report.runs import made_run
from tests.toys import ToySupernet

__all__ = ["make_inputs"]

_SHORT = [
    "--workload=vocab=20",
    "--workload=source_length=3",
    "--workload=target_length=2",
    "--workload=beam=1",
    "--repeats=1",
    "--warmup=0",
]


def make_inputs(folder: Path, monkeypatch: pytest.MonkeyPatch, hosts: bool = True) -> Path:
    """Fill the folder with files that installed packages can make, those of hosts on request."""
    save_space(SPACE, folder / "space.yml")
    SPACE.largest().save(folder / "a.json")
    _measurements(folder)
    _records(folder)
    made_run(folder / "run", evaluations=12)
    _searches(folder, monkeypatch)
    if find_spec("onnx"):
        _networks(folder)
    if hosts and find_spec("timm"):
        _images(folder)
    if hosts and find_spec("fairseq"):
        _translation(folder)
    return folder


def _command(*arguments: Any) -> None:
    assert main([str(each) for each in arguments]) == 0, arguments


def _measurements(folder: Path) -> None:
    measured = folder / "measured.jsonl"
    _command("latency", "collect", "--space", folder / "space.yml", "--out", measured, "--samples", 16, *_SHORT)
    latency_model(folder / "latency.json")
    table = np.random.default_rng(0).integers(1, 6, (20, len(COLUMNS))).astype(float)
    lines = [",".join(COLUMNS), *(",".join(map(str, row)) for row in table.tolist())]
    (folder / "hat.csv").write_text("\n".join(lines) + "\n")


def _records(folder: Path) -> None:
    graphs = random_graphs((5, 6, 7) * 6, seed=1)
    values = 0.5 + sizes_of_operations(graphs)
    records = [{"graph": one.to_dict(), "target": float(value)} for one, value in zip(graphs, values, strict=True)]
    _write(folder / "graphs.jsonl", records)
    tiny = ["--model", "nn-former", "--set", "dim=16", "--set", "depth=1", "--set", "epochs=1"]
    _command(
        "lab", "predictor", "train", "--data", folder / "graphs.jsonl", "--out", folder / "predictor.safetensors", *tiny
    )
    rows = np.random.default_rng(0).integers(0, 5, (6, 6))
    _write(folder / "cells.jsonl", [{"architecture": row.tolist(), "acc": float(row.sum())} for row in rows])
    drawn = list(dict.fromkeys(SPACE.architectures(SPACE.sample_rows(np.random.default_rng(0), 30))))[:6]
    trained = [{"genes": one.to_dict(), "metrics": {"bleu": 40 - 4 * score(one)["loss"]}} for one in drawn]
    _write(folder / "trained.jsonl", trained)


def _searches(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    toy = ToySupernet(SPACE, score, {"kind": "translation"})
    with monkeypatch.context() as patch:
        patch.setattr("nas_core.supernet.host.open_supernet", lambda path, **options: toy)
        files = ["--supernet", folder / "a.json", "--out", folder / "calibration.safetensors"]
        _command("lab", "calibrate", *files, "--metric", "bleu", "--trained", folder / "trained.jsonl")
        by = [
            "--strategy",
            "random",
            "--set",
            "evaluations=4",
            "--finalists",
            1,
            "--no-measure",
            "--limit",
            "params_m=9",
        ]
        _command("search", "--checkpoint", folder / "a.json", "--out", folder / "searched" / "run", *by)


def _write(path: Path, records: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))


def _networks(folder: Path) -> None:
    import onnx

    from tests.graph.onnx.models import chain, residual

    graphs = [read_onnx(made).graph for size in range(2, 12) for made in (residual(channels=4 * size), chain(size))]
    statics, families = np.array([graph.static for graph in graphs]), ["residual", "chain"] * 10
    held_out = last_of_each(families, 0.2)
    names = np.array([f"n{number}" for number in range(20)])
    latency = 0.1 + 10 * statics[:, 3]
    NetworkLatencies(Graphs.of(graphs), latency, np.array(families), names, held_out).save(folder / "networks.npz")
    onnx.save(residual(channels=8), folder / "net.onnx")
    options = ["--model", "counts", "--runtime", "onnxruntime", "--out", folder / "networks.safetensors"]
    _command("latency", "train", "--data", folder / "networks.npz", *options)


def _images(folder: Path) -> None:
    import timm

    from tests.latency.by_graph.published.tiny import table
    from tests.timm_ext.running import space_file
    from tests.timm_ext.trained.tiny import save, vit
    from timm_ext.checkpoint import save_checkpoint

    torch.manual_seed(0)
    space = space_file(folder / "images")
    model = timm.create_model("mformer_cifar10_small_supernet", search_space=str(space), num_classes=2)
    save_checkpoint(folder / "images.pt", model, arch="mformer_cifar10_small_supernet", epoch=1)
    save(vit(), folder / "vit.pt")
    table(folder / "published.csv", "i7,test_vit,160,1,1.1,0.4,0.04,0.37", "i7,test_resnet,160,1,1.5,0.5,0.04,0.47")


def _translation(folder: Path) -> None:
    from tests.fairseq_ext.running import USER_DIR, run

    for split in ("train", "valid"):
        for side in ("src", "tgt"):
            (folder / f"{split}.{side}").write_text("a b c\nb c\n" * 4)
    names = [f"--{split}pref={folder / split}" for split in ("train", "valid")]
    done = run("preprocess", "-s", "src", "-t", "tgt", *names, "--destdir", folder / "bin", "--workers", 1)
    assert done.code == 0, done.err
    done = run(
        "train", folder / "bin", "--user-dir", USER_DIR, "--arch", "mos_transformer_small", "--mos", "neuron",
        "--search-space", folder / "space.yml", "--mos-router-hidden", 4, "--optimizer", "adam", "--lr", 0.01,
        "--batch-size", 8, "--cpu", "--num-workers", 0, "--distributed-world-size", 1, "--max-update", 1,
        "--criterion", "label_smoothed_cross_entropy", "--save-dir", folder / "trained", "--no-epoch-checkpoints",
    )  # fmt: skip
    assert done.code == 0, done.err
    (folder / "trained" / "checkpoint_last.pt").rename(folder / "translation.pt")
