"""The zero-cost proxy of a third party."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from nas_core.proxies import zero_cost
from tests.toys import plug_in


def test_it_is_asked_for_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plug_in(tmp_path, monkeypatch, "nas_ext.proxies", "l2_norm", "examples.plugins.zero_cost_proxy:L2_NORM")
    layer = nn.Linear(2, 1)
    layer.load_state_dict({"weight": torch.tensor([[3.0, 4.0]]), "bias": torch.tensor([7.0])})
    assert zero_cost(layer, torch.ones(2, 2), proxies=["l2_norm"]) == {"l2_norm": 5.0}
