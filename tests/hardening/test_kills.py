"""Who measures or trains is killed at random moments: nothing that was finished is lost, and nothing is there twice."""

from __future__ import annotations

import json
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from nas_core.cli import main
from nas_core.space import save_space
from tests.cli.searching import SPACE
from tests.hardening.killing import finished, killed_and_finished
from tests.predictor.graphs import random_graphs, sizes_of_operations

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600), pytest.mark.filterwarnings("ignore")]


def command(*words: object) -> None:
    assert main([str(word) for word in words]) == 0, words


def test_a_collection_of_latencies(tmp_path: Path) -> None:
    save_space(SPACE, tmp_path / "space.yml")
    short = ("--vocab=20", "--source-length=3", "--target-length=2", "--beam=1", "--repeats=1", "--warmup=0")

    def work(file: Path) -> None:
        command("latency", "collect", "--space", tmp_path / "space.yml", "--out", file, "--samples", 40, *short)

    (tmp_path / "whole").mkdir()
    (tmp_path / "cut").mkdir()
    whole, cut = tmp_path / "whole" / "m.jsonl", tmp_path / "cut" / "m.jsonl"
    seconds = finished(partial(work, whole))
    killed_and_finished(partial(work, cut), cut.parent, seconds, seed=1)
    keys = [[json.loads(line).get("key") for line in file.read_text().splitlines()] for file in (whole, cut)]
    measured = [[key for key in each if key is not None] for each in keys]
    assert len(measured[0]) == 40 and measured[0] == measured[1], "the same networks, each once"
    assert {path.name for path in cut.parent.iterdir()} == {path.name for path in whole.parent.iterdir()}


@pytest.mark.skipif(find_spec("onnx") is None, reason="needs onnx")
def test_a_data_set_of_network_latencies(tmp_path: Path) -> None:
    options = ("--networks", 3, "--families", "mformer", "--runtimes", "torch", "--visits", 1, "--repeats", 1)
    always = ("--warmup", 0, "--most-ms", 1e6)

    def work(folder: Path) -> None:
        command("latency", "dataset", "--out", folder, *options, *always)

    seconds = finished(partial(work, tmp_path / "whole"))
    killed_and_finished(partial(work, tmp_path / "cut"), tmp_path / "cut", seconds, seed=2)
    files = [sorted(path.name for path in (tmp_path / name).rglob("*")) for name in ("whole", "cut")]
    assert files[0] == files[1]
    for file in (tmp_path / "whole").glob("*.npz"):
        with np.load(file) as one, np.load(tmp_path / "cut" / file.name) as other:
            assert one["names"].tolist() == other["names"].tolist()


def test_a_predictor(tmp_path: Path) -> None:
    graphs = random_graphs((5, 6, 7) * 20, seed=1)
    values = (0.5 + sizes_of_operations(graphs)).tolist()
    records = [{"graph": one.to_dict(), "target": value} for one, value in zip(graphs, values, strict=True)]
    (tmp_path / "graphs.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))

    def work(folder: Path) -> None:
        tiny = ("--set", "dim=16", "--set", "depth=1", "--epochs", 30, "--curve", folder / "curve.json")
        if not (folder / "p.safetensors").exists():
            files = ("--data", tmp_path / "graphs.jsonl", "--out", folder / "p.safetensors")
            command("predictor", "train", *files, *tiny)

    for name in ("whole", "cut"):
        (tmp_path / name).mkdir()
    seconds = finished(partial(work, tmp_path / "whole"))
    killed_and_finished(partial(work, tmp_path / "cut"), tmp_path / "cut", seconds, seed=3)
    files = {path.name: path.read_bytes() for path in (tmp_path / "whole").iterdir()}
    assert {path.name: path.read_bytes() for path in (tmp_path / "cut").iterdir()} == files
