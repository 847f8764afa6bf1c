"""Networks of NAS-Bench-201 cells (Dong & Yang 2020, section 2.1) with random weights, for zero-cost proxies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from nas_core.graph.nasbench201 import CHOICES, STATES, nasbench201_graph, nasbench201_ops
from nas_core.random_streams import own_streams


class _ConvBlock(nn.Sequential):
    def __init__(self, before: int, after: int, kernel: int, stride: int = 1) -> None:
        convolution = nn.Conv2d(before, after, kernel, stride, kernel // 2, bias=False)
        super().__init__(nn.ReLU(), convolution, nn.BatchNorm2d(after))


def _operation(name: str, channels: int) -> nn.Module | None:
    if name == "none":
        return None
    if name == "skip_connect":
        return nn.Identity()
    if name == "avg_pool_3x3":
        return nn.AvgPool2d(3, 1, 1, count_include_pad=False)
    return _ConvBlock(channels, channels, 1 if name == "nor_conv_1x1" else 3)


class _Cell(nn.Module):
    def __init__(self, operations: Sequence[int], channels: int) -> None:
        super().__init__()
        edges = {edge: _operation(CHOICES[index], channels) for edge, index in zip(STATES, operations, strict=True)}
        self.edges = nn.ModuleDict({f"{a}_{b}": module for (a, b), module in edges.items() if module is not None})

    def forward(self, x: Tensor) -> Tensor:
        states = [x]
        for target in (1, 2, 3):
            terms = [
                self.edges[f"{source}_{target}"](states[source])
                for source in range(target)
                if f"{source}_{target}" in self.edges
            ]
            states.append(sum(terms[1:], terms[0]) if terms else torch.zeros_like(x))
        return states[3]


class _Residual(nn.Module):
    def __init__(self, before: int, after: int) -> None:
        super().__init__()
        self.body = nn.Sequential(_ConvBlock(before, after, 3, 2), _ConvBlock(after, after, 3))
        self.shortcut = nn.Sequential(nn.AvgPool2d(2, 2), nn.Conv2d(before, after, 1, bias=False))

    def forward(self, x: Tensor) -> Tensor:
        total: Tensor = self.body(x) + self.shortcut(x)
        return total


class NasBench201Net(nn.Module):
    """Classifier of images ``(B, 3, height, width)`` with three stages of ``cells`` cells.

    Args:
        operations: six indices into :data:`nas_core.graph.nasbench201.CHOICES`, in the order of the official string.
        channels: C of the first stage. It doubles in each later stage.
    """

    def __init__(self, operations: Sequence[int], channels: int = 16, cells: int = 5, classes: int = 10) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, channels, 3, padding=1, bias=False), nn.BatchNorm2d(channels))
        widths = (channels, 2 * channels, 4 * channels)
        layers: list[nn.Module] = []
        for before, width in zip((None, *widths), widths, strict=False):
            layers += [] if before is None else [_Residual(before, width)]
            layers += [_Cell(operations, width) for _ in range(cells)]
        self.layers = nn.Sequential(*layers)
        self.last = nn.Sequential(nn.BatchNorm2d(widths[-1]), nn.ReLU())
        self.classifier = nn.Linear(widths[-1], classes)

    def forward(self, images: Tensor) -> Tensor:
        x: Tensor = self.last(self.layers(self.stem(images)))
        return F.linear(x.mean((2, 3)), self.classifier.weight, self.classifier.bias)


def nasbench201_network(
    architecture: str | Sequence[int] | NDArray[Any],
    *,
    channels: int = 16,
    cells: int = 5,
    classes: int = 10,
    seed: int = 0,
) -> NasBench201Net:
    """Build the network of a NAS-Bench-201 cell with random weights.

    PyTorch's global random state does not change.

    Args:
        architecture: string such as ``|nor_conv_3x3~0|+..``, or six indices into
            :data:`nas_core.graph.nasbench201.CHOICES`.

    Raises:
        GraphError, UnknownChoiceError: the architecture is not a cell of the benchmark.
    """
    nasbench201_graph(architecture)
    operations = nasbench201_ops(architecture) if isinstance(architecture, str) else [int(op) for op in architecture]
    with own_streams(seed):
        return NasBench201Net(operations, channels, cells, classes)
