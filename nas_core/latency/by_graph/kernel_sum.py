"""Latency as a sum over kernels, whose times a small network learns from the latencies of whole networks."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from nas_core.checks import Range, check_fields
from nas_core.errors import ConfigError
from nas_core.graph import Graphs
from nas_core.graph.onnx.operators import CORRECTED, KINDS
from nas_core.latency.by_graph.base import GraphLatencyModel, Progress
from nas_core.latency.by_graph.data import NetworkLatencies
from nas_core.latency.by_graph.kernels import NUMBERS, SURROUNDINGS, Kernels
from nas_core.latency.model import Floats
from nas_core.predictor.artifact import below
from nas_core.predictor.progress import Losses
from nas_core.random_streams import own_streams

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
_CHUNK = 200
"""Networks predicted at once."""
_MATRIX = tuple(CORRECTED.index(name) for name in ("conv", "conv_transpose", "gemm", "matmul", "attention"))
_RIDGE = 1e-2
"""Squared errors of logarithms that a squared coefficient of a standardised term counts as."""


@dataclass(frozen=True)
class KernelSumConfig:
    """Settings of the network that tells a kernel's time, and of its training."""

    width: int = 48
    """Width of its two hidden layers."""
    epochs: int = 80
    """Passes over the networks."""
    batch_size: int = 64
    """Networks of a step."""
    members: int = 2
    """Networks that are trained, each from weights and an order of its own; the geometric mean of their sums counts."""
    share_of_whole: float = 0.4
    """Weight of what the network costs as a whole in the logarithm of a prediction."""
    lr: float = 5e-3
    """Peak learning rate; it falls to 0 along a cosine."""
    weight_decay: float = 1e-2
    """Weight decay of AdamW."""
    most_off: float = 0.1
    """Error of a logarithm from which on it counts in proportion instead of by its square."""

    def __post_init__(self) -> None:
        check_fields(self, "sums over kernels", _RANGES)


class KernelNet(nn.Module):
    """Kernels -> log ms of each: a start on paper, and what two hidden layers add to it.

    What they add stays beyond the sizes of the training as it is at their end; costs on paper go on growing.
    """

    mean: Tensor
    """``(20,)`` of the numbers of kernels; what follows are their deviations, their least and most, and prices."""
    scale: Tensor
    ranges: Tensor
    prices: Tensor

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
        """``(R,)``."""
        given = (numbers.clamp(self.ranges[0], self.ranges[1]) - self.mean) / self.scale
        x = F.gelu(self.kind(kinds) + self.numbers(given) + self.near(near))
        x = F.gelu(self.hidden(x)) + x
        on_paper = (work @ self.prices[:2] + self.prices[2]).log()
        logs: Tensor = on_paper + self.out(x).squeeze(-1)
        return logs


class KernelSumModel(GraphLatencyModel):
    """A network as the sum of its kernels, each with a time that depends on what it computes and what stands around it.

    Kernels are those of families that were never seen, too: a small network learns the time of one from its kind,
    costs, shape and surroundings, taught by nothing but sums, the latencies of whole networks. It starts from prices of
    FLOPs, memory access and of a kernel itself. nn-Meter (Zhang et al., MobiSys 2021) adds kernels likewise, but has to
    measure each kind by itself. The logarithm of a prediction is the mean of the sum's and of a quadratic polynomial of
    the logarithms of the whole network's costs; where these disagree, the spread is wide.
    """

    name = "kernel-sum"
    reads = ("attributes", "shapes", "costs", "static")
    config_class = KernelSumConfig
    config: KernelSumConfig
    _nets: tuple[KernelNet, ...] = ()
    _scale: Floats
    _weights: Floats

    def learn(self, data: NetworkLatencies, seed: int, progress: Progress | None) -> None:
        kernels, config = Kernels.of(data.graphs), self.config
        wanted = torch.from_numpy(np.log(data.latency_ms)).float().to(self.device)
        there = _Placed(kernels, self.device)
        steps = config.members * config.epochs * math.ceil(len(data) / config.batch_size)
        losses = Losses(progress, steps)
        made = []
        for member in range(config.members):
            with own_streams(seed * 1000 + member, self.device):
                net = _begun(KernelNet(config.width), kernels, data.latency_ms).to(self.device)
            order = np.random.default_rng([seed, member, 7])
            self._train(net, there, wanted, order, losses)
            made.append(net.eval().requires_grad_(False))
        losses.tell()
        fitted = polynomial_fit(log_costs(data.graphs), np.log(data.latency_ms))
        self._nets, (self._scale, self._weights) = tuple(made), fitted

    def _train(
        self, net: KernelNet, there: _Placed, wanted: Tensor, order: np.random.Generator, losses: Losses
    ) -> None:
        config, count = self.config, len(wanted)
        steps = config.epochs * math.ceil(count / config.batch_size)
        optimizer = torch.optim.AdamW(net.parameters(), config.lr, weight_decay=config.weight_decay)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, config.lr, total_steps=steps + 1, pct_start=0.1)
        for _ in range(config.epochs):
            shuffled = order.permutation(count)
            for start in range(0, count, config.batch_size):
                rows = shuffled[start : start + config.batch_size]
                predicted = there.summed(net, rows)
                loss = F.smooth_l1_loss(
                    predicted, wanted[torch.from_numpy(rows).to(wanted.device)], beta=config.most_off
                )
                optimizer.zero_grad()
                loss.backward()  # type: ignore[no-untyped-call]
                torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
                optimizer.step()
                schedule.step()
                losses.add(loss.detach())
        if not math.isfinite(float(loss.detach())):
            raise ConfigError(f"sums over kernels diverged with lr {config.lr:g}; give a smaller one")

    def move(self) -> None:
        for net in self._nets:
            net.to(self.device)

    @torch.inference_mode()
    def estimate(self, graphs: Graphs) -> tuple[Floats, Floats | None]:
        there = _Placed(Kernels.of(graphs), self.device)
        parts = [np.arange(start, min(start + _CHUNK, len(graphs))) for start in range(0, len(graphs), _CHUNK)]
        logs = torch.stack([torch.cat([there.summed(net, part) for part in parts]) for net in self._nets])
        sums = logs.double().cpu().numpy().mean(0)
        whole = polynomial_of(log_costs(graphs), self._scale, self._weights)
        share = self.config.share_of_whole
        predicted: Floats = np.exp((1 - share) * sums + share * whole)
        return predicted, predicted * np.abs(sums - whole) * np.sqrt(share * (1 - share))

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


class _Placed:
    """Kernels on a device, and sums over them."""

    def __init__(self, kernels: Kernels, device: torch.device) -> None:
        self.kernels, self.device = kernels, device
        self.arrays = [
            torch.from_numpy(array).to(device)
            for array in (kernels.kinds, kernels.numbers, kernels.neighbours, kernels.work)
        ]
        self.log_counts = torch.from_numpy(np.log(kernels.counts)).to(device)

    def summed(self, net: KernelNet, networks: Any) -> Tensor:
        """log ms ``(B,)`` of these networks."""
        rows, place = (torch.from_numpy(part).to(self.device) for part in self.kernels.rows_of(networks))
        times = (net(*(array[rows] for array in self.arrays)) + self.log_counts[rows]).exp()
        total = torch.zeros(len(networks), device=self.device).index_add(0, place, times)
        return total.clamp_min(1e-9).log()


def _begun(net: KernelNet, kernels: Kernels, latency_ms: Floats) -> KernelNet:
    """Set what the network does not learn: the scale of its inputs, and prices at which GFLOPs, memory access and the
    kernels themselves cost a third of the usual network each."""
    net.mean.copy_(torch.from_numpy(kernels.numbers.mean(0)))
    net.scale.copy_(torch.from_numpy(np.maximum(kernels.numbers.std(0), 0.1)))
    network = np.repeat(np.arange(len(latency_ms)), np.diff(kernels.first))
    each = (*kernels.work.T.astype(np.float64), np.ones(len(network)))
    totals = [np.bincount(network, kernels.counts * column, len(latency_ms)) for column in each]
    prices = [np.exp(np.log(latency_ms / np.maximum(total, 1e-6)).mean()) / 3 for total in totals]
    net.ranges.copy_(torch.from_numpy(np.stack([kernels.numbers.min(0), kernels.numbers.max(0)])))
    net.prices.copy_(torch.tensor(prices))
    return net


def log_costs(graphs: Graphs) -> Floats:
    """``(G, 4)`` logarithms of GFLOPs, of what convolutions and products give (timm's activations), of parameters and
    of memory access."""
    assert graphs.static is not None and graphs.shapes is not None
    network = np.repeat(np.arange(len(graphs)), graphs.sizes)
    given = np.maximum(graphs.shapes.astype(np.float64), 1).prod(1) * np.isin(graphs.ops, _MATRIX)
    activations = np.bincount(network, given, len(graphs)) / 1e6
    columns = np.column_stack([graphs.static[:, 1], activations, graphs.static[:, 2], graphs.static[:, 3]])
    return np.asarray(np.log(np.maximum(columns, 1e-6)), np.float64)


def polynomial_fit(costs: Floats, logs: Floats) -> tuple[Floats, Floats]:
    """Scale ``(2, 4)`` and weights ``(15,)`` of the polynomial of costs ``(G, 4)`` that is nearest to ``logs (G,)`` by
    ridge regression."""
    scale = np.asarray(np.stack([costs.mean(0), np.maximum(costs.std(0), 1e-3)]), np.float64)
    inputs = _terms((costs - scale[0]) / scale[1])
    penalty = _RIDGE * len(logs) * np.eye(inputs.shape[1])
    penalty[0, 0] = 0
    return scale, np.asarray(np.linalg.solve(inputs.T @ inputs + penalty, inputs.T @ logs), np.float64)


def polynomial_of(costs: Floats, scale: Floats, weights: Floats) -> Floats:
    """``(G,)``; costs farther from the mean than three standard deviations count as that, for a quadratic polynomial
    bends back."""
    given = np.clip((costs - scale[0]) / scale[1], -3, 3)
    return np.asarray(_terms(given) @ weights)


def _terms(given: Floats) -> Floats:
    """``(G, 15)`` constant, linear, quadratic."""
    first, second = np.triu_indices(given.shape[1])
    return np.hstack([np.ones((len(given), 1)), given, given[:, first] * given[:, second]])
