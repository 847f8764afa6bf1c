"""Latency model that sums over kernels and is trained on the latencies of whole networks."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from nas_core.checks import Range, check_fields
from nas_core.graph import Graphs
from nas_core.graph.graphs import spans
from nas_core.graph.onnx.encoding import ATTRIBUTES
from nas_core.graph.onnx.operators import CLASS_OF, CLASSES, KIND_NAMES, KINDS
from nas_core.latency.by_graph.base import GraphLatencyModel, Progress, train_batches
from nas_core.latency.by_graph.data import NetworkLatencies
from nas_core.latency.model import Floats
from nas_core.predictor.artifact import below
from nas_core.predictor.progress import Losses
from nas_core.random_streams import own_streams

_GROUPS, _SUMMED = ATTRIBUTES.index("groups"), ATTRIBUTES.index("summed")
_KERNEL = slice(ATTRIBUTES.index("kernel_depth"), ATTRIBUTES.index("kernel_width") + 1)
_CONVOLUTIONS = tuple(KIND_NAMES.index(name) for name in ("conv", "conv_transpose"))
SURROUNDINGS = 2 * CLASSES  # columns of Kernels.neighbours
_MULTIPLE = 8
NUMBERS = 3 + 4 + len(ATTRIBUTES) + 5  # columns of Kernels.numbers
_RANGES = {
    "width": Range(1),
    "epochs": Range(1),
    "batch_size": Range(1),
    "members": Range(1),
    "lr": Range(0, without=(0,)),
    "weight_decay": Range(0),
    "most_off": Range(0, without=(0,)),
    "share_of_whole": Range(0, 1),
}
_MATRIX = tuple(KIND_NAMES.index(name) for name in ("conv", "conv_transpose", "gemm", "matmul", "attention"))
_RIDGE = 1e-2


@dataclass(frozen=True)
class KernelSumConfig:
    """Settings of :class:`KernelSumModel`."""

    width: int = 48
    """Width of the two hidden layers."""
    epochs: int = 80
    """Training epochs."""
    batch_size: int = 64
    """Networks per training step."""
    members: int = 2
    """Ensemble size; predictions are the geometric mean."""
    share_of_whole: float = 0.4
    """Weight of the polynomial of the network's costs in the logarithm of a prediction."""
    lr: float = 5e-3
    """Peak learning rate, with cosine decay to 0."""
    weight_decay: float = 1e-2
    """Weight decay of AdamW."""
    most_off: float = 0.1
    """Error of log latency above which the loss is linear instead of quadratic."""

    def __post_init__(self) -> None:
        check_fields(self, "sums over kernels", _RANGES)


class KernelNet(nn.Module):
    """Network from features of kernels to log latency in ms: a linear function of costs, with a learned correction."""

    mean: Tensor
    """``(20,)`` means of :attr:`Kernels.numbers`"""
    scale: Tensor
    """``(20,)`` standard deviations"""
    ranges: Tensor
    """``(2, 20)`` minima and maxima, to which inputs are clipped"""
    prices: Tensor
    """``(3,)`` ms per GFLOP, per million elements of memory access, and per kernel"""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(NUMBERS))
        self.register_buffer("scale", torch.ones(NUMBERS))
        self.register_buffer("ranges", torch.zeros(2, NUMBERS))
        self.register_buffer("prices", torch.ones(3))
        self.kind = nn.Embedding(KINDS, width)
        self.numbers = nn.Linear(NUMBERS, width)
        self.near = nn.Linear(SURROUNDINGS, width, bias=False)
        self.hidden, self.out = nn.Linear(width, width), nn.Linear(width, 1)
        nn.init.normal_(self.kind.weight, std=0.3)
        nn.init.zeros_(self.out.weight)
        nn.init.zeros_(self.out.bias)

    def forward(self, kinds: Tensor, numbers: Tensor, near: Tensor, work: Tensor) -> Tensor:
        """Return the log latency ``(R,)`` of R kernels from attributes of :class:`Kernels`; ``near``: neighbours."""
        inputs = (numbers.clamp(self.ranges[0], self.ranges[1]) - self.mean) / self.scale
        x = F.gelu(self.kind(kinds) + self.numbers(inputs) + self.near(near))
        x = F.gelu(self.hidden(x)) + x
        priced = (work @ self.prices[:2] + self.prices[2]).log()
        return torch.add(priced, self.out(x).squeeze(-1))


class KernelSumModel(GraphLatencyModel):
    """Sum over kernels, whose times depend on their costs, shapes and neighbours.

    Unlike nn-Meter (Zhang et al., MobiSys 2021), the model is trained on whole networks, without measured kernels. Log
    latency is a weighted mean of the logarithm of the sum and a quadratic polynomial of the network's log costs. Their
    disagreement adds to the standard deviation.
    """

    name = "kernel-sum"
    reads = ("attributes", "shapes", "costs", "static")
    config_class = KernelSumConfig
    config: KernelSumConfig
    _nets: tuple[KernelNet, ...] = ()
    _scale: Floats
    _weights: Floats

    def learn(self, data: NetworkLatencies, seed: int, progress: Progress | None) -> None:
        kernels, config = Kernels.of(data.graphs, self.device), self.config
        targets = torch.from_numpy(np.log(data.latency_ms)).float().to(self.device)
        steps = config.members * config.epochs * math.ceil(len(data) / config.batch_size)
        losses = Losses(progress, steps)
        nets = []
        for member in range(config.members):
            with own_streams(seed * 1000 + member, self.device):
                net = _with_prices(KernelNet(config.width), kernels, data.latency_ms).to(self.device)
            self._train(net, kernels, targets, np.random.default_rng([seed, member, 7]), losses)
            nets.append(net.eval().requires_grad_(False))
        losses.tell()
        fitted = polynomial_fit(log_costs(data.graphs), np.log(data.latency_ms))
        self._nets, (self._scale, self._weights) = tuple(nets), fitted

    def _train(
        self, net: KernelNet, kernels: Kernels, targets: Tensor, order: np.random.Generator, losses: Losses
    ) -> None:
        config = self.config
        steps = config.epochs * math.ceil(len(targets) / config.batch_size)
        optimizer = torch.optim.AdamW(net.parameters(), config.lr, weight_decay=config.weight_decay)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, config.lr, total_steps=steps + 1, pct_start=0.1)

        def loss_of(rows: NDArray[np.int64]) -> Tensor:
            target = targets[torch.from_numpy(rows).to(targets.device)]
            return F.smooth_l1_loss(kernels.log_ms(net, rows), target, beta=config.most_off)

        train_batches(self.name, net, loss_of, optimizer, schedule, len(targets), config, order, losses)

    def move(self) -> None:
        for net in self._nets:
            net.to(self.device)

    @torch.inference_mode()
    def estimate(self, graphs: Graphs) -> tuple[Floats, Floats | None]:
        kernels = Kernels.of(graphs, self.device)
        logs = torch.stack([kernels.log_ms(net, np.arange(len(graphs))) for net in self._nets])
        sums = logs.double().cpu().numpy().mean(0)
        polynomials = polynomial_of(log_costs(graphs), self._scale, self._weights)
        share = self.config.share_of_whole
        predicted: Floats = np.exp((1 - share) * sums + share * polynomials)
        return predicted, predicted * np.abs(sums - polynomials) * np.sqrt(share * (1 - share))

    def tensors(self) -> dict[str, Tensor]:
        nets = {f"{i}.{name}": value for i, net in enumerate(self._nets) for name, value in net.state_dict().items()}
        return {**nets, "scale": torch.from_numpy(self._scale), "weights": torch.from_numpy(self._weights)}

    def restore(self, header: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
        nets = []
        for member in range(self.config.members):
            with torch.device("meta"):
                net = KernelNet(self.config.width)
            net.load_state_dict(below(f"{member}.", tensors), assign=True)
            nets.append(net.to(self.device).eval().requires_grad_(False))
        self._scale, self._weights = (tensors[name].numpy().astype(np.float64) for name in ("scale", "weights"))
        self._nets = tuple(nets)


def _with_prices(net: KernelNet, kernels: Kernels, latency_ms: Floats) -> KernelNet:
    numbers, work, counts = (array.cpu().numpy() for array in (kernels.numbers, kernels.work, kernels.counts))
    net.mean.copy_(torch.from_numpy(numbers.mean(0)))
    net.scale.copy_(torch.from_numpy(np.maximum(numbers.std(0), 0.1)))
    network = np.repeat(np.arange(len(latency_ms)), np.diff(kernels.first))
    columns = (*work.T.astype(np.float64), np.ones(len(network)))
    totals = [np.bincount(network, counts * column, len(latency_ms)) for column in columns]
    prices = [np.exp(np.log(latency_ms / np.maximum(total, 1e-6)).mean()) / 3 for total in totals]
    net.ranges.copy_(torch.from_numpy(np.stack([numbers.min(0), numbers.max(0)])))
    net.prices.copy_(torch.tensor(prices))
    return net


def log_costs(graphs: Graphs) -> Floats:
    """Return logarithms ``(G, 4)`` of GFLOPs, activations (timm's definition), parameters and memory access."""
    assert graphs.static is not None and graphs.shapes is not None
    network = np.repeat(np.arange(len(graphs)), graphs.sizes)
    outputs = np.maximum(graphs.shapes.astype(np.float64), 1).prod(1) * np.isin(graphs.ops, _MATRIX)
    activations = np.bincount(network, outputs, len(graphs)) / 1e6
    columns = np.column_stack([graphs.static[:, 1], activations, graphs.static[:, 2], graphs.static[:, 3]])
    return np.asarray(np.log(np.maximum(columns, 1e-6)), np.float64)


def polynomial_fit(costs: Floats, logs: Floats) -> tuple[Floats, Floats]:
    """Fit a quadratic polynomial of log costs ``(G, 4)`` to log latencies ``(G,)``.

    Returns:
        Mean and standard deviation of the costs ``(2, 4)``, and weights ``(15,)``.
    """
    scale = np.asarray(np.stack([costs.mean(0), np.maximum(costs.std(0), 1e-3)]), np.float64)
    inputs = _terms((costs - scale[0]) / scale[1])
    penalty = _RIDGE * len(logs) * np.eye(inputs.shape[1])
    penalty[0, 0] = 0
    return scale, np.asarray(np.linalg.solve(inputs.T @ inputs + penalty, inputs.T @ logs), np.float64)


def polynomial_of(costs: Floats, scale: Floats, weights: Floats) -> Floats:
    """Evaluate a polynomial of :func:`polynomial_fit`, with costs clipped to three standard deviations."""
    return np.asarray(_terms(np.clip((costs - scale[0]) / scale[1], -3, 3)) @ weights)


def _terms(costs: Floats) -> Floats:
    first, second = np.triu_indices(costs.shape[1])
    return np.hstack([np.ones((len(costs), 1)), costs, costs[:, first] * costs[:, second]])


@dataclass(frozen=True)
class Kernels:
    """R kernels of G networks, without operators that have no costs. Equal kernels of a network are stored once."""

    counts: Tensor
    """``(R,)`` number of equal kernels in the network."""
    first: NDArray[np.int64]
    """``(G + 1,)`` index of the first kernel of each network."""
    kinds: Tensor
    """``(R,)`` operator types."""
    work: Tensor
    """``(R, 2)`` GFLOPs and million elements of memory access."""
    numbers: Tensor
    """``(R, 20)`` logarithms of FLOPs, parameters, memory access, shape and attributes; then 0 or 1 for depth-wise,
    grouped and 1 x 1 convolutions, and for channels and summed elements that are multiples of 8."""
    neighbours: Tensor
    """``(R, 8)`` 1 for each class of operators (products, element-wise, reductions, others) before and after the
    kernel."""

    @classmethod
    def of(cls, graphs: Graphs, device: torch.device | str = "cpu") -> Kernels:
        assert graphs.attributes is not None and graphs.shapes is not None and graphs.costs is not None
        network = np.repeat(np.arange(len(graphs)), graphs.sizes)
        costs = graphs.costs.astype(np.float64)
        busy = np.flatnonzero((costs[:, 0] + costs[:, 2]) > 0)
        near = _neighbours(graphs)[busy]
        kinds, network = graphs.ops[busy].astype(np.int64), network[busy]
        columns = (network, kinds, graphs.attributes[busy], graphs.shapes[busy], costs[busy], near)
        first, counts = _once(columns)
        rows = busy[first]
        numbers = _numbers(kinds[first], graphs.attributes[rows], graphs.shapes[rows], costs[rows])
        work = (costs[rows][:, [0, 2]] / (1e9, 1e6)).astype(np.float32)
        arrays = (counts.astype(np.float32), kinds[first], work, numbers, near[first].astype(np.float32))
        on_device = [torch.from_numpy(array).to(device) for array in arrays]
        return cls(on_device[0], np.searchsorted(network[first], np.arange(len(graphs) + 1)), *on_device[1:])

    def log_ms(self, net: KernelNet, networks: NDArray[np.int64]) -> Tensor:
        """Return the logarithm of the summed kernel times ``(n,)`` of networks, given by index ``(n,)``."""
        device = self.counts.device
        rows, place = (torch.from_numpy(part).to(device) for part in self.rows_of(networks))
        times = net(self.kinds[rows], self.numbers[rows], self.neighbours[rows], self.work[rows])
        times = (times + self.counts[rows].log()).exp()
        total = torch.zeros(len(networks), device=device).index_add(0, place, times)
        return total.clamp_min(1e-9).log()

    def rows_of(self, networks: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the indices ``(r,)`` of the kernels of networks ``(n,)``, and the position in ``networks`` of each."""
        sizes = self.first[networks + 1] - self.first[networks]
        return spans(self.first, networks), np.repeat(np.arange(len(networks)), sizes)


def _neighbours(graphs: Graphs) -> NDArray[np.bool_]:
    begin = np.repeat(np.cumsum(graphs.sizes) - graphs.sizes, graphs.edge_counts)
    source, target = graphs.edges[:, 0] + begin, graphs.edges[:, 1] + begin
    sorts, neighbours = CLASS_OF[graphs.ops], np.zeros((len(graphs.ops), SURROUNDINGS), np.bool_)
    neighbours[target, sorts[source]] = True
    neighbours[source, SURROUNDINGS // 2 + sorts[target]] = True
    return neighbours


def _once(columns: tuple[NDArray[np.generic], ...]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    wide = np.hstack([np.asarray(column, np.float64).reshape(len(columns[0]), -1) for column in columns])
    bytes_of = np.ascontiguousarray(wide).view(np.dtype((np.void, wide.shape[1] * wide.itemsize))).ravel()
    _, first, counts = np.unique(bytes_of, return_index=True, return_counts=True)
    order = np.argsort(first)
    return first[order], counts[order]


def _numbers(
    kinds: NDArray[np.int64],
    attributes: NDArray[np.float32],
    shapes: NDArray[np.float32],
    costs: NDArray[np.float64],
) -> NDArray[np.float32]:
    convolution = np.isin(kinds, _CONVOLUTIONS)
    groups, summed = attributes[:, _GROUPS], attributes[:, _SUMMED]
    flags = (
        convolution & (groups > 1) & (summed == 1),
        convolution & (groups > 1) & (summed > 1),
        convolution & (attributes[:, _KERNEL].max(1) == 1),
        np.where(convolution, shapes[:, 1], shapes.max(1)) % _MULTIPLE == 0,
        summed % _MULTIPLE == 0,
    )
    logs = np.log1p(np.maximum(np.hstack([costs, shapes, attributes]), 0.0))
    return np.hstack([logs, np.stack(flags, 1)]).astype(np.float32)
