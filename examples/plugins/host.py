"""Example of a host: supernets of two linear layers that classify points inside and outside a circle."""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from nas_core.files.writing import atomic_output
from nas_core.layers import ElasticLinear
from nas_core.space import Architecture, Choice, SearchSpace
from nas_core.supernet import Host, Supernet

POINTS = torch.randn(400, 2, generator=torch.Generator().manual_seed(0))
OUTSIDE = (POINTS.norm(dim=1) > 1.2).float()


class CircleSupernet(nn.Module, Supernet):
    """Supernet whose subnets have the first ``width`` hidden units."""

    space = SearchSpace("circle", [Choice.make("width", [2, 4, 8, 16, 32])])

    def __init__(self) -> None:
        super().__init__()
        self.task = {"kind": "circle"}
        self.first, self.second = ElasticLinear(2, 32), ElasticLinear(32, 1)

    def loss(self, width: int) -> Tensor:
        hidden = nn.functional.linear(POINTS, *self.first.select(2, width)).relu()
        logits = nn.functional.linear(hidden, *self.second.select(width, 1))[:, 0]
        return nn.functional.binary_cross_entropy_with_logits(logits, OUTSIDE)

    def evaluate(self, architecture: Architecture, report: Any = None) -> dict[str, float]:
        return {"loss": self.loss(architecture.number("width")).item()}

    def extract(self, architecture: Architecture, path: Path) -> int:
        width = architecture.number("width")  # of nn.Sequential(nn.Linear(2, width), nn.ReLU(), nn.Linear(width, 1))
        layers = {"0": self.first.select(2, width), "2": self.second.select(width, 1)}
        state = {f"{number}.{part}": t for number, pair in layers.items() for part, t in pair._asdict().items()}
        with atomic_output(path) as temporary:
            torch.save({name: tensor.detach().clone() for name, tensor in state.items()}, temporary)
        return sum(tensor.numel() for tensor in state.values())


class CircleHost(Host):
    name = "circle"

    def recognises(self, checkpoint: Path) -> bool:
        return checkpoint.suffix == ".circle"

    def open(self, checkpoint: Path, **options: Any) -> CircleSupernet:
        supernet = CircleSupernet()
        supernet.load_state_dict(torch.load(checkpoint, weights_only=True))
        return supernet


HOST = CircleHost()
"""Offered as ``circle = "package.module:HOST"`` in the entry-point group ``nas_ext.hosts``."""
