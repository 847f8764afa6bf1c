"""Studies of supernets of translation: their routers, and trainings from scratch."""

import json
import re

import pytest
import torch

from nas_core.cli import main
from nas_core.files.journal import read_jsonl
from nas_core.files.reading import read_json

pytestmark = pytest.mark.usefixtures("warm_programs")


def plots_of(page):
    text = page.read_text(encoding="utf-8")
    return [json.loads(figure) for figure in re.findall(r'id="plot\d+-figure">(.*?)</script>', text)]


def study(name, out, *arguments):
    return main(["lab", "study", name, "--out", str(out), *map(str, arguments)])


def test_routing_needs_the_checkpoint_alone(trained, tmp_path, capsys):
    assert study("routing", tmp_path, "--checkpoint", trained("neuron"), "--set", "random=2") == 0
    result = read_json(tmp_path / "routing.json")
    distances = {(row["first"], row["second"]): row["distance"] for row in result["rows"]}
    assert len(distances) == 10 and all(0 <= distance <= 0.8326 for distance in distances.values())
    assert distances["smallest", "largest"] == result["summary"][0]["extremes"] > 0
    (plot,) = plots_of(tmp_path / "routing.html")
    assert plot["data"][0]["z"][0][2] == pytest.approx(distances["smallest", "largest"])
    assert "smallest" in capsys.readouterr().out


def test_gap_trains_standalone_networks_once_for_several_supernets(trained, corpus, tmp_path):
    settings = ["--set", "architectures=3", "--set", "train.max_update=2", "--set", "train.lr=0.005"]
    options = ["--checkpoint", trained("neuron"), "--checkpoint", trained("layer"), *settings]
    assert study("gap", tmp_path, *options) == 0
    records = read_jsonl(tmp_path / "standalone.jsonl")
    assert len(records) == 3 and len({record["examples"] for record in records}) == 1
    result = read_json(tmp_path / "gap.json")
    alone = {row["key"]: row["standalone"] for row in result["rows"]}
    assert len(result["rows"]) == 6 and len(result["summary"]) == 2
    assert all(row["standalone"] == alone[row["key"]] for row in result["rows"])
    (plot,) = plots_of(tmp_path / "gap.html")
    assert [len(trace["x"]) for trace in plot["data"]] == [2, 3, 3]
    assert set(plot["data"][1]["x"]) == set(alone.values())
    networks = {path.name for path in (tmp_path / "standalone").iterdir()}
    assert networks == set(alone)
    state = torch.load(tmp_path / "standalone" / networks.pop() / "checkpoint_last.pt", weights_only=False)
    assert state["cfg"]["optimization"]["max_update"] == 2 and state["cfg"]["optimization"]["lr"] == [0.005]
    assert not any("routers" in name for name in state["model"])
    assert read_json(tmp_path / "standalone.json")["data"] == {"data": str(corpus.resolve())}
    assert study("gap", tmp_path, *options[:-1], "train.lr=0.1", "--set", "architectures=4") == 2
