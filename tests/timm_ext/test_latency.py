"""Latency of timm's networks: families, predictions, and ``nas-ext latency dataset --from-timm``."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import timm
import torch

from nas_core.cli import main
from nas_core.latency.by_graph.counts import CountsModel
from nas_core.latency.by_graph.dataset.folder import read_dataset
from nas_core.latency.by_graph.families.family import Family
from nas_core.latency.by_graph.families.registry import network_families
from nas_core.latency.by_graph.predict import predict_module_latency
from tests.latency.by_graph.families.contract import check_family
from tests.latency.by_graph.published.tiny import table
from tests.latency.by_graph.toy import toy_networks
from timm_ext.families import FAMILIES

pytestmark = pytest.mark.onnx
ROWS = (
    "i7,test_byobnet,160,1,1.1,0.46,0.03,0.43",
    "i7,test_vit,160,1,1.3,0.37,0.04,0.48",
    "i7,test_resnet,160,1,1.5,9.99,0.04,0.48",
    "i7,of_another_timm,160,1,1.5,0.5,0.04,0.48",
    "gpu,test_vit,96,4,2.5,,,",
    "gpu,test_byobnet,64,4,2.1,0.46,,",
)


def run(capsys: pytest.CaptureFixture[str], *arguments: Any) -> tuple[int, str, str]:
    code = main(["latency", *map(str, arguments)])
    out, err = capsys.readouterr()
    return code, out, err


@pytest.fixture
def csv(tmp_path: Path) -> Path:
    return table(tmp_path / "t.csv", *ROWS)


def test_families_are_modules(csv: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = csv.with_name("set")
    code, output, err = run(capsys, "dataset", "--out", out, "--from-timm", csv, "--device", "i7")
    assert code == 0 and f"2 networks in {out}, as timm measured them on i7" in output
    assert "1 skipped" in err and err.count("of_another_timm") == 1
    assert re.search(r"^note: timm \S+ does not have the model of_another_timm; install the release", err, re.M)
    assert "test_resnet-160-b1: the network has 0.47 M parameters, but 9.99 M were published" in err
    data = read_dataset(out, "torch")
    assert sorted(data.family_names) == ["byobnet", "vision_transformer"]
    assert data.graphs.static is not None
    assert 10 * data.graphs.static[:, 2] == pytest.approx(
        [0.46 if f == "byobnet" else 0.37 for f in data.families], 0.03
    )
    assert dict(zip(data.families, data.latency_ms, strict=True)) == {"byobnet": 1.1, "vision_transformer": 1.3}
    code, _, err = run(capsys, "train", "--data", out, "--out", csv.with_name("m.safetensors"), "--model", "counts")
    assert code == 2 and "0 of 2 networks are held out" in err, "torch's latencies are taken unasked"


def test_wrong_inputs_are_one_line(csv: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, options = csv.with_name("set"), ["--from-timm", csv]
    for arguments, message in [
        (options, "give --out FOLDER"),
        (["--out", out, *options], "has measurements of i7, gpu; give one of them with --device"),
        (["--out", out, *options, "--device", "i8"], "Did you mean 'i7'?"),
        (["--out", out, *options, "--device", "i7", "--set", "visits=2"], "--set have no effect with --from-timm"),
        (["--out", out, *options, "--device", "i7", "--networks", 9], "count is 9, but the table has"),
    ]:
        code, output, err = run(capsys, "dataset", *arguments)
        assert code == 2 and output == "", arguments
        assert message in err and err.count("\n") == 1, (arguments, err)
    assert not out.exists()


@pytest.mark.parametrize("member", FAMILIES, ids=lambda member: member.name)
def test_families(member: Family) -> None:
    check_family(member, samples=1)
    assert network_families()[member.name] is member


def test_models_of_timm_are_predicted() -> None:
    model, network = CountsModel().fit(toy_networks()), timm.create_model("resnet18")
    predicted = predict_module_latency(network, torch.zeros(1, 3, 64, 64), model)
    assert not predicted.unknown and predicted.latency_ms > 0 and network.training
    params = sum(p.numel() for p in network.parameters()) / 1e6
    assert predicted.params_m == pytest.approx(params, rel=0.05)
