"""A host of a third party: its supernets are torch files of two elastic layers, which tell points of two rings apart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from nas_core.layers import ElasticLinear
from nas_core.space import Architecture, Choice, SearchSpace

SPACE = SearchSpace("rings", [Choice.make("width", [2, 4, 8, 16, 32])])


class Supernet(nn.Module):
    """Two linear layers of which an architecture takes the first ``width`` hidden units; also the protocol of hosts."""

    space, task = SPACE, {"kind": "rings"}

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = ElasticLinear(2, 32), ElasticLinear(32, 1)

    def forward(self, points: Tensor, width: int) -> Tensor:
        hidden = nn.functional.linear(points, *self.first.select(2, width)).relu()
        return nn.functional.linear(hidden, *self.second.select(width, 1))[:, 0]

    def evaluate(self, architecture: Architecture, report: Any = None) -> dict[str, float]:
        points, outer = rings(seed=1)
        with torch.no_grad():
            logits = self(points, architecture.number("width"))
        return {"loss": nn.functional.binary_cross_entropy_with_logits(logits, outer).item()}

    def extract(self, architecture: Architecture, path: Path) -> int:
        width = architecture.number("width")
        layers = {"0": self.first.select(2, width), "2": self.second.select(width, 1)}
        state = {f"{n}.{part}": t.detach().clone() for n, w in layers.items() for part, t in w._asdict().items()}
        torch.save(state, path)  # of nn.Sequential(Linear, ReLU, Linear)
        return sum(tensor.numel() for tensor in state.values())


class RingsHost:
    """Offered as ``rings = "package.module:HOST"`` in the entry-point group ``nas_ext.hosts``."""

    name = "rings"

    def recognises(self, checkpoint: Path) -> bool:
        return checkpoint.suffix == ".rings"

    def open(self, checkpoint: Path, **options: Any) -> Supernet:
        supernet = Supernet()
        supernet.load_state_dict(torch.load(checkpoint, weights_only=True))
        return supernet


HOST = RingsHost()
