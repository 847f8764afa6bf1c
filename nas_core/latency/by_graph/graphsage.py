"""GraphSAGE as a latency model of any network."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from scipy.sparse import csr_array
from torch import Tensor, nn
from torch.nn import functional

from nas_core.checks import Range, check_fields
from nas_core.errors import ConfigError
from nas_core.graph import Graphs
from nas_core.graph.onnx.operators import KINDS
from nas_core.latency.by_graph.base import GraphLatencyModel, Progress
from nas_core.latency.by_graph.data import NetworkLatencies
from nas_core.latency.model import Floats
from nas_core.predictor.device import to_device
from nas_core.predictor.losses import log_loss
from nas_core.predictor.nn_former.model import one_hot, scale_of, sinusoids, standardised
from nas_core.predictor.nn_former.packed import PackedBatch, Pairs, global_edges, sparse_ones
from nas_core.predictor.progress import Losses
from nas_core.random_streams import own_streams

WARMUP = 0.1
CHUNK_NODES = 8000
_CLIP = 1.0  # gradient norm above which gradients are clipped

_RANGES = {
    **{name: Range(1) for name in ("dim", "layers", "epochs", "batch_size")},
    "dropout": Range(0, 1, exclude=(1,)),
    "lr": Range(0, exclude=(0,)),
    "weight_decay": Range(0),
}


@dataclass(frozen=True)
class SageConfig:
    """Settings of :class:`GraphSageModel`."""

    dim: int = 128
    """Number of channels."""
    layers: int = 3
    """Number of aggregation layers."""
    dropout: float = 0.05
    """Dropout of the hidden channels of the readout."""
    epochs: int = 60
    """Training epochs."""
    batch_size: int = 16
    """Networks per training step."""
    lr: float = 2e-3
    """Peak learning rate of AdamW, after a warm-up of a tenth of the steps; cosine decay to 0."""
    weight_decay: float = 1e-3
    """Weight decay of AdamW."""

    def __post_init__(self) -> None:
        check_fields(self, "GraphSAGE", _RANGES)


def neighbours_of(graphs: Graphs) -> csr_array:
    edges = global_edges(graphs)
    return sparse_ones(np.concatenate([edges, edges[:, ::-1]]), (len(graphs.ops), len(graphs.ops)))


class SageLayer(nn.Module):
    """Sum of the projected node and the projected mean of its neighbours, normalised to L2 norm 1."""

    def __init__(self, inputs: int, dim: int) -> None:
        super().__init__()
        self.itself, self.around = nn.Linear(inputs, dim), nn.Linear(inputs, dim, bias=False)

    def forward(self, x: Tensor, neighbours: Pairs, degree: Tensor) -> Tensor:
        """Map T nodes ``(T, C)``, edges in both directions, and degrees ``(T, 1)`` to ``(T, C)``."""
        mean = neighbours.sum(self.around(x)) / degree
        return functional.relu(functional.normalize(self.itself(x) + mean, dim=-1))


class SageNet(nn.Module):
    """GraphSAGE network of NNLP (Liu et al., ICPP 2022), on the 192 node features of NN-Former.

    Args:
        attributes: number of attributes of each node.
    """

    def __init__(self, config: SageConfig, attributes: int) -> None:
        super().__init__()
        self.config, dim = config, config.dim
        self.embed = nn.Linear(KINDS + 10 * attributes + 4 * 20, dim)
        self.layers = nn.ModuleList(SageLayer(dim, dim) for _ in range(config.layers))
        self.static = nn.Linear(4, dim)
        self.hidden, self.head = nn.Linear(2 * dim, dim), nn.Linear(dim, 1)
        self.scale: Tensor
        self.register_buffer("scale", torch.tensor([[0.0, 1.0]] * 5))
        """``(5, 2)`` mean and standard deviation of the four log static features and of log(ms)."""

    def forward(self, batch: PackedBatch, neighbours: Pairs, static: Tensor) -> Tensor:
        """Return log(ms) ``(B,)``.

        Args:
            neighbours: edges in both directions.
            static: logarithms ``(B, 4)`` of batch size, FLOPs, parameters and memory access.
        """
        assert batch.attributes is not None and batch.shapes is not None
        codes = [sinusoids(batch.attributes[0], 5).flatten(1), sinusoids(batch.shapes[0], 10).flatten(1)]
        x = functional.relu(self.embed(torch.cat([one_hot(batch.ops[0], KINDS), *codes], -1)))
        degree = neighbours.row_sums(torch.ones_like(neighbours.columns, dtype=x.dtype)).clamp(min=1).unsqueeze(-1)
        for layer in self.layers:
            x = layer(x, neighbours, degree)
        summed = batch.total(x[None])
        static_features = functional.relu(self.static(standardised(static, self.scale[:-1])))
        hidden = functional.relu(self.hidden(torch.cat([torch.log1p(summed), static_features], -1)))
        hidden = functional.dropout(hidden, self.config.dropout, self.training)
        mean, deviation = self.scale[-1]
        return torch.add(self.head(hidden).squeeze(-1) * deviation, mean)


class GraphSageModel(GraphLatencyModel):
    """Graph neural network of NNLP, trained on squared errors of log latency."""

    name = "graphsage"
    reads: ClassVar[tuple[str, ...]] = ("attributes", "shapes", "static")
    config_class = SageConfig
    config: SageConfig
    _net: SageNet

    def learn(self, data: NetworkLatencies, seed: int, progress: Progress | None) -> None:
        graphs, config, device = data.graphs, self.config, self.device
        assert graphs.attributes is not None
        count, steps = len(graphs), config.epochs * math.ceil(len(graphs) / config.batch_size)
        logarithms = torch.from_numpy(_log_static(graphs)).float()
        latency_ms = torch.from_numpy(data.latency_ms).float()
        static, targets = logarithms.to(device), latency_ms.to(device)
        with own_streams(seed, device):
            net = SageNet(config, graphs.attributes.shape[1])
            net.scale = scale_of(torch.cat([logarithms, latency_ms.log().unsqueeze(-1)], -1).T)
            net.to(device).train()
            fused = device.type in ("cpu", "cuda")
            optimizer = torch.optim.AdamW(net.parameters(), config.lr, weight_decay=config.weight_decay, fused=fused)
            schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: _rate(step, steps))
            losses = Losses(progress, steps)
            stream = np.random.default_rng([seed, 3])
            for _ in range(config.epochs):
                order = stream.permutation(count)
                for start in range(0, count, config.batch_size):
                    rows = order[start : start + config.batch_size]
                    batch, indices = graphs.take(rows), to_device(rows, device)
                    neighbours = Pairs.of(neighbours_of(batch), device)
                    predicted = net(PackedBatch.of(batch, device), neighbours, static[indices])
                    loss = log_loss(predicted.exp(), targets[indices])
                    optimizer.zero_grad()
                    loss.backward()  # type: ignore[no-untyped-call]
                    torch.nn.utils.clip_grad_norm_(net.parameters(), _CLIP)
                    optimizer.step()
                    schedule.step()
                    losses.add(loss.detach())
            losses.report()
        if not math.isfinite(float(loss.detach())):
            raise ConfigError(f"latency model {self.name!r} diverged with lr {config.lr:g}; give a smaller lr")
        self._net = net.eval()

    def move(self) -> None:
        if self.known_operations:
            self._net.to(self.device)

    @torch.inference_mode()
    def estimate(self, graphs: Graphs) -> tuple[Floats, Floats | None]:
        chunk_of = np.cumsum(graphs.sizes) // CHUNK_NODES
        chunks = [np.flatnonzero(chunk_of == number) for number in np.unique(chunk_of)]
        predicted = torch.cat([self._predicted(graphs.take(rows)) for rows in chunks])
        return predicted.double().exp().cpu().numpy(), None

    def _predicted(self, graphs: Graphs) -> Tensor:
        neighbours = Pairs.of(neighbours_of(graphs), self.device, trained=False)
        static = to_device(_log_static(graphs).astype(np.float32), self.device)
        return self._net(PackedBatch.of(graphs, self.device), neighbours, static)  # type: ignore[no-any-return]

    def tensors(self) -> dict[str, Tensor]:
        return dict(self._net.state_dict())

    def restore(self, header: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
        attributes = (tensors["embed.weight"].shape[1] - KINDS - 80) // 10
        with torch.device("meta"):
            net = SageNet(self.config, attributes)
        net.load_state_dict(dict(tensors), assign=True)
        self._net = net.to(self.device).eval()


def _log_static(graphs: Graphs) -> Floats:
    assert graphs.static is not None
    return np.log(np.maximum(graphs.static.astype(np.float64), 1e-9))


def _rate(step: int, steps: int) -> float:
    warm = WARMUP * steps
    if step < warm:
        return (step + 1) / (warm + 1)
    return 0.5 * (1 + math.cos(math.pi * (step - warm) / max(1.0, steps - warm)))
