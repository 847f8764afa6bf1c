"""A source of published networks that needs no host: small ones, and all that can go wrong with one."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from nas_core.latency.by_graph.published.collect import NetworkSource
from nas_core.latency.by_graph.published.export import NamedNetwork, exporting

COLUMNS = "device,model,img_size,batch_size,step_ms,param_count_m,gmacs,macts"


class Sleeper(nn.Module):
    """Never ends, unless it is interrupted."""

    def forward(self, x: Tensor) -> Tensor:
        while True:
            time.sleep(0.01)


class Greedy(nn.Module):
    """Wants 64 GB."""

    def forward(self, x: Tensor) -> Tensor:
        return x + torch.empty(2**34).sum()


class Foreign(nn.Module):
    """The exporter does not know what it computes."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.linalg.eigvals(x).real


class Standardised(nn.Conv2d):
    """Its weights are standardised in each pass, to a shape that another one has."""

    def __init__(self) -> None:
        super().__init__(3, 8, 3)

    def forward(self, images: Tensor, exact: bool = False) -> Tensor:
        assert exact is False, "it was made a tensor"
        flat = nn.functional.batch_norm(self.weight.reshape(1, 8, -1), None, None, training=True)
        return nn.functional.conv2d(images, flat.reshape_as(self.weight), self.bias).mean((2, 3))


def conv(width: int) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, width, 3),
        nn.BatchNorm2d(width),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(width, 10),
    )


MAKERS: dict[str, Callable[[], nn.Module]] = {
    "sleeper": Sleeper,
    "greedy": Greedy,
    "foreign": Foreign,
    "standardised": Standardised,
}


def build(model: str, img_size: int) -> NamedNetwork | None:
    """``conv8`` and the like are of family conv."""
    kind = model.rstrip("0123456789")
    if kind != "conv" and kind not in MAKERS:
        return None

    def make(params_m: float | None) -> tuple[nn.Module, tuple[Tensor, ...]]:
        network = conv(int(model[4:])) if kind == "conv" else MAKERS[kind]()
        return network.eval(), (torch.randn(1, 3, img_size, img_size),)

    return NamedNetwork(kind, make)


def opener(**limits: Any) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    return exporting(build, **limits)


SOURCE = NetworkSource("tiny", "1.0", opener)


def table(path: Path, *rows: str) -> Path:
    path.write_text("\n".join([COLUMNS, *rows]) + "\n")
    return path
