"""Proxies on the network's device against the CPU."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from nas_core.models.nasbench201 import nasbench201_network
from nas_core.proxies import zero_cost

NAMES = ("params", "flops", "synflow", "nwot", "jacov", "grad_norm", "snip")


def test_convolutions(device: str) -> None:
    network, images = nasbench201_network([3, 1, 2, 4, 3, 2], channels=4, cells=1), torch.randn(4, 3, 16, 16)
    _same(network, images, device)


def test_tokens(device: str) -> None:
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, activation="gelu")
    network = nn.Sequential(nn.Embedding(11, 16), layer, nn.Linear(16, 5))
    _same(network, torch.randint(11, (4, 6)), device)


def _same(network: nn.Module, inputs: torch.Tensor, device: str) -> None:
    expected = zero_cost(network, inputs, proxies=NAMES)
    scored = zero_cost(network.to(device), inputs, proxies=NAMES)  # the network decides where
    assert scored == pytest.approx(expected, rel=1e-3)
