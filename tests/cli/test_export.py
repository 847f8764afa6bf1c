"""``nas-ext export``: wrong input, and what is handed to the host."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from nas_core.cli import main
from nas_core.export.parts import Exportable, ExportModule, OpenDim, Value
from nas_core.space import Architecture, get_space
from nas_core.supernet import host as module
from tests.toys import ToyHost

SPACE = get_space("hat_small")


class Doubled(nn.Module):
    def forward(self, x: Tensor) -> tuple[Tensor]:
        return (x + x,)


class ToyModel:
    def __init__(self) -> None:
        self.space, self.asked = SPACE, list[Architecture]()

    def exportable(self, architecture: Architecture) -> Exportable:
        self.asked.append(architecture)
        values = [(Value(name, ("batch", 2)),) for name in "xy"]
        return Exportable(
            (ExportModule("model", Doubled(), values[0], values[1], (OpenDim("batch"),)),), {"kind": "toy"}
        )


class ExportingHost(ToyHost):
    """Opens its checkpoints for export too."""

    def __init__(self) -> None:
        super().__init__()
        self.model = ToyModel()

    def open_exportable(self, checkpoint: Path, **options: Any) -> ToyModel:
        self.options = options
        return self.model


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> ExportingHost:
    toy, old = ExportingHost(), ToyHost("old", b"old weights")
    monkeypatch.setattr(module, "each_host", lambda: iter([("old", old), ("toy", toy)]))
    return toy


Export = Callable[..., int]


@pytest.fixture
def export(tmp_path: Path, host: ExportingHost) -> Export:
    (tmp_path / "subnet.pt").write_bytes(b"weights")
    (tmp_path / "old.pt").write_bytes(b"old weights")
    (tmp_path / "other.pt").write_bytes(b"something else")

    def call(*more: str, checkpoint: str = "subnet.pt", out: str = "out") -> int:
        return main(["export", "--checkpoint", str(tmp_path / checkpoint), "--out", str(tmp_path / out), *more])

    return call


@pytest.mark.parametrize("arch", ["smallest", "largest", "file"])
def test_the_subnet_that_was_asked_for(
    arch: str, export: Export, host: ExportingHost, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    expected = SPACE.largest() if arch == "largest" else SPACE.smallest()
    SPACE.smallest().save(tmp_path / "file")
    named = str(tmp_path / "file") if arch == "file" else arch
    assert export("--arch", named, "--to", "torch-export", "--data", "elsewhere") == 0
    assert host.model.asked == [expected] and host.options == {"data": "elsewhere"}
    first, second = capsys.readouterr().out.splitlines()
    assert expected.key in first and "model.pt2" in first and second.startswith("model: at most 0.0e+00")
    (result,) = torch.export.load(tmp_path / "out" / "model.pt2").module()(torch.ones(4, 2))
    assert result.tolist() == [[2.0, 2.0]] * 4


def test_onnx_needs_its_packages(
    export: Export, host: ExportingHost, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "onnxscript", None)
    pytest.importorskip("onnx")
    assert export("--arch", "largest") == 2
    assert "pip install 'nas-ext[onnx]'" in capsys.readouterr().err
    assert not host.model.asked, "said before anything is computed"
