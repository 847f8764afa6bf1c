"""Who measures or trains is killed at random moments: nothing that was finished is lost, and nothing is there twice."""

from __future__ import annotations

import json
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import pytest

from nas_core.cli import main
from nas_core.latency.by_graph.dataset.collect import NetworkSetConfig, collect_networks
from nas_core.space import save_space
from tests.cli.searching import SPACE
from tests.hardening.killing import finished, killed_and_finished
from tests.latency.by_graph.dataset.tiny import ONE, TIMING, TWO
from tests.predictor.graphs import random_graphs, sizes_of_operations

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600), pytest.mark.filterwarnings("ignore")]


def command(*words: object) -> None:
    assert main([str(word) for word in words]) == 0, words


def lines(file: Path) -> list[bytes]:
    """The whole lines of a file that may be there."""
    return file.read_bytes().split(b"\n")[:-1] if file.exists() else []


def left_over(folder: Path) -> list[str]:
    """What only an unfinished command may have."""
    return [path.name for path in folder.rglob("*") if path.name.startswith(".") or path.name.endswith(".part")]


def test_a_collection_of_latencies(tmp_path: Path) -> None:
    save_space(SPACE, tmp_path / "space.yml")
    short = (
        "--workload=vocab=20",
        "--workload=source_length=3",
        "--workload=target_length=2",
        "--workload=beam=1",
        "--repeats=1",
        "--warmup=0",
    )
    file = tmp_path / "out" / "measured.jsonl"

    def work() -> None:
        command("latency", "collect", "--space", tmp_path / "space.yml", "--out", file, "--samples", 40, *short)

    states = killed_and_finished(work, lambda: lines(file), 41, seed=1)
    end = lines(file)
    assert all(end[: len(each)] == each for each in states), "what was measured stays as it was"
    keys = [json.loads(line)["key"] for line in end[1:]]
    assert len(keys) == len(set(keys)) == 40 and not left_over(file.parent)


@pytest.mark.skipif(find_spec("onnx") is None, reason="needs onnx")
def test_a_data_set_of_network_latencies(tmp_path: Path) -> None:
    folder = tmp_path / "set"
    config = NetworkSetConfig(visits=1, group_size=2, min_ms=1e-3, runtimes=("torch",), max_ms=1e9)

    def work() -> None:
        collect_networks(folder, (ONE, TWO), 8, TIMING, config, progress=False)

    states = killed_and_finished(work, lambda: lines(folder / "dataset.jsonl"), 9, seed=2)
    end = lines(folder / "dataset.jsonl")
    assert all(end[: len(each)] == each for each in states), "what was measured stays as it was"
    names = [json.loads(line)["name"] for line in end[1:]]
    assert len(names) == len(set(names)) == 8 and not left_over(folder)


def test_a_predictor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nas_core.predictor.progress.EVERY_S", 0.0)
    graphs = random_graphs((5, 6, 7) * 20, seed=1)
    values = (0.5 + sizes_of_operations(graphs)).tolist()
    records = [{"graph": one.to_dict(), "target": value} for one, value in zip(graphs, values, strict=True)]
    (tmp_path / "graphs.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))

    def work(folder: Path) -> None:
        tiny = ("--model", "nn-former", "--set", "dim=16", "--set", "depth=1", "--set", "epochs=20")
        command(
            "lab", "predictor", "train", "--data", tmp_path / "graphs.jsonl", "--out", folder / "p.safetensors", *tiny
        )

    full, cut = tmp_path / "whole", tmp_path / "cut"
    for folder in (full, cut):
        folder.mkdir()
    finished(partial(work, full))
    killed_and_finished(partial(work, cut), lambda: [*cut.glob("p*.0.safetensors")], 2, seed=3)
    files = {path.name: path.read_bytes() for path in full.iterdir()}
    assert {path.name: path.read_bytes() for path in cut.iterdir()} == files
