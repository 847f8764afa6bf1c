"""Families whose networks take no time."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from nas_core.latency import TimingConfig
from nas_core.latency.by_graph.dataset.collect import NetworkSetConfig
from nas_core.latency.by_graph.families.family import Family

TIMING = TimingConfig(repeats=2, warmup=0)
CONFIG = NetworkSetConfig(visits=2, group_size=2, min_ms=1e-3)


def sample(rng: np.random.Generator) -> dict[str, Any]:
    return {"width": int(rng.integers(4, 400))}


def build(settings: Any) -> tuple[nn.Module, tuple[Tensor, ...]]:
    layers = nn.Sequential(nn.Conv2d(3, settings["width"], 3), nn.BatchNorm2d(settings["width"]), nn.ReLU())
    return layers, (torch.randn(1, 3, 8, 8),)


def failing(settings: Any) -> Any:
    raise ValueError(f"no network\nof width {settings['width']}")


def infinite(settings: Any) -> Any:
    layers, inputs = build(settings)
    return layers, (inputs[0] / 0,)


class _Sorted(nn.Module):
    """The exporter does not know what it computes."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.linalg.eigvals(x).real


def unknown(settings: Any) -> Any:
    return _Sorted(), (torch.randn(1, 3, 8, 8),)


ONE, TWO = Family("one", "", sample, build), Family("two", "", sample, build)
BROKEN = (
    Family("failing", "", sample, failing),
    Family("infinite", "", sample, infinite),
    Family("unknown", "", sample, unknown),
)
