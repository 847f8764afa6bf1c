"""A supernet whose gradients are known by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from nas_core.space import Architecture, Choice, SearchSpace
from nas_core.supernet.host import Report, Supernet

SPACE = SearchSpace("line", [Choice.make("width", (1, 2, 3))])


class Line(nn.Module):
    """A weight for each unit of width."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.tensor([1.0, 2.0, 3.0]))

    def select(self, architecture: Architecture) -> Tensor:
        return self.weight[: architecture.number("width")]


class LinearSupernet(Supernet):
    """``loss = (w . x - y)^2`` over the first weights; a batch is ``(x, y)``."""

    network: Any = None

    def __init__(self) -> None:
        self.space, self.task, self.network = SPACE, {"kind": "line"}, Line()

    def batches(self) -> list[tuple[Tensor, float]]:
        return [(torch.tensor([1.0, 1.0, -2.0]), 0.0), (torch.tensor([2.0, 0.0, 1.0]), 1.0)]

    def training_loss(self, architecture: Architecture, batch: Any) -> Tensor:
        weight = self.network.select(architecture)
        return (weight @ batch[0][: len(weight)] - batch[1]) ** 2

    def evaluate(self, architecture: Architecture, report: Report | None = None) -> dict[str, float]:
        losses = [float(self.training_loss(architecture, batch).detach()) for batch in self.batches()]
        return {"loss": sum(losses) / len(losses)}

    def extract(self, architecture: Architecture, path: Path) -> int:
        raise NotImplementedError
