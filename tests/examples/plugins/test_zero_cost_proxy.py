"""The zero-cost proxy of a third party."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from examples.plugins.zero_cost_proxy import l2_norm
from nas_core.proxies import PROXIES, zero_cost


def test_it_is_asked_for_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PROXIES._registered, "l2_norm", l2_norm)  # private: forgotten after the test
    layer = nn.Linear(2, 1)
    layer.load_state_dict({"weight": torch.tensor([[3.0, 4.0]]), "bias": torch.tensor([7.0])})
    assert zero_cost(layer, torch.ones(2, 2), proxies=["l2_norm"]) == {"l2_norm": 5.0}
