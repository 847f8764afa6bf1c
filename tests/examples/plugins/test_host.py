"""A third party's host: plugged in by its entry point, its checkpoints are searched and extracted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from torch import nn

from examples.plugins.host import OUTSIDE, POINTS, CircleSupernet
from nas_core.cli import main
from nas_core.space import Architecture
from tests.contracts.host import HostContract
from tests.toys import plug_in


@pytest.fixture(autouse=True)
def plugged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plug_in(tmp_path / "site", monkeypatch, "nas_ext.hosts", "circle", "examples.plugins.host:HOST")


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """A supernet after a few updates, each of the smallest, the largest and another width."""
    torch.manual_seed(0)
    supernet = CircleSupernet()
    optimizer = torch.optim.Adam(supernet.parameters(), 0.02)
    for update in range(100):
        optimizer.zero_grad()
        sum(supernet.loss(width) for width in (2, 32, (4, 8, 16)[update % 3])).backward()
        optimizer.step()
    torch.save(supernet.state_dict(), tmp_path / "net.circle")
    return tmp_path / "net.circle"


class TestCircleHost(HostContract):
    host = "circle"


def test_its_supernet_is_searched_and_extracted(
    checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, out = tmp_path / "run", tmp_path / "subnet.pt"
    small = ["--evaluations", "10", "--finalists", "2"]
    assert main(["search", "--checkpoint", str(checkpoint), "--out", str(run), *small]) == 0, capsys.readouterr().err
    (best, *_) = json.loads((run / "finalists.json").read_text())["finalists"]
    architecture = Architecture.load(run / best["file"])
    files = ["--checkpoint", str(checkpoint), "--out", str(out), "--arch", str(run / best["file"])]
    assert main(["extract", *files]) == 0, capsys.readouterr().err
    width = architecture.number("width")
    static = nn.Sequential(nn.Linear(2, width), nn.ReLU(), nn.Linear(width, 1))
    static.load_state_dict(torch.load(out, weights_only=True))
    loss = nn.functional.binary_cross_entropy_with_logits(static(POINTS)[:, 0], OUTSIDE).item()
    assert loss == pytest.approx(best["metrics"]["loss"], rel=1e-5) and loss < 0.6
