"""A network of fairseq's is converted on any device."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

pytest.importorskip("fairseq")

from nas_core.supernet import open_supernet
from nas_core.supernet.elastic.conversion import convert
from nas_core.supernet.host import open_trained


def test_outputs_stay_equal(device: str, own_model: Callable[..., Path], joined: Path, tmp_path: Path) -> None:
    trained = open_trained(own_model("translation", "pre-norm"), data=str(joined), calibration_batches=2, device=device)
    assert all(tensor.device.type == torch.device(device).type for tensor in trained.net.state_dict().values())
    done = convert(trained, tmp_path / "s.pt", importance_by="activation", calibration_batches=2)
    assert done.difference <= 1e-5 and done.batches == 2
    supernet = open_supernet(tmp_path / "s.pt", data=str(joined), device=device)
    assert supernet.evaluate(supernet.space.largest())["loss"] < float("inf")
