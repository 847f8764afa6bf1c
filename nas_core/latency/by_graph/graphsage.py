"""The GraphSAGE latency model: training and prediction."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from nas_core.errors import ConfigError, DataError
from nas_core.graph import GraphError, Graphs
from nas_core.graph.onnx.operators import KINDS
from nas_core.latency.by_graph.base import Floats, GraphLatencyModel, Progress
from nas_core.latency.by_graph.data import NetworkLatencies
from nas_core.latency.by_graph.priced import Priced
from nas_core.latency.by_graph.prices import log_static
from nas_core.latency.by_graph.sage_net import SageConfig, SageNet
from nas_core.predictor.nn_former.log_readout import scale_of
from nas_core.predictor.nn_former.packed import PackedBatch
from nas_core.predictor.training.losses import log_loss
from nas_core.random_streams import own_streams

__all__ = ["GraphSageModel", "GraphSagePricedModel"]

WARMUP = 0.1
CHUNK_NODES = 8000
"""Nodes predicted at once."""


class GraphSageModel(GraphLatencyModel):
    """A graph network as NNLP's, see :class:`SageNet`; trained on squared errors of log ms."""

    name = "graphsage"
    reads: ClassVar[tuple[str, ...]] = ("attributes", "shapes", "static")
    config_class = SageConfig
    config: SageConfig
    _net: SageNet

    def check(self, graphs: Graphs) -> None:
        super().check(graphs)
        if int(graphs.ops.max()) >= KINDS:
            raise GraphError(f"operation index {int(graphs.ops.max())} in a graph; expected 0 to {KINDS - 1}")

    @property
    def _attributes(self) -> int:
        return (self._net.embed.in_features - KINDS - 80) // 10

    def learn(self, data: NetworkLatencies, seed: int, progress: Progress | None) -> None:
        graphs = data.graphs
        assert graphs.attributes is not None
        config, count = self.config, len(graphs)
        stream = np.random.default_rng([seed, 3])
        static = torch.from_numpy(log_static(graphs)).float()
        targets = torch.from_numpy(data.latency_ms).float()
        with own_streams(seed):
            net = SageNet(config, graphs.attributes.shape[1]).train()
            net.scale = scale_of(torch.cat([static, targets.log().unsqueeze(-1)], -1).T)
            optimizer = torch.optim.AdamW(net.parameters(), config.lr, weight_decay=config.weight_decay, fused=True)
            steps = config.epochs * math.ceil(count / config.batch_size)
            schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: _rate(step, steps))
            step = 0
            for _ in range(config.epochs):
                order = stream.permutation(count)
                for start in range(0, count, config.batch_size):
                    rows = order[start : start + config.batch_size]
                    loss = log_loss(net(PackedBatch.of(graphs.take(rows)), static[rows]).exp(), targets[rows])
                    optimizer.zero_grad()
                    loss.backward()  # type: ignore[no-untyped-call]
                    torch.nn.utils.clip_grad_norm_(net.parameters(), config.clip)
                    optimizer.step()
                    schedule.step()
                    step += 1
                    if progress is not None:
                        progress(step, steps, float(loss.detach()))
            if not math.isfinite(float(loss.detach())):
                raise ConfigError(f"GraphSAGE diverged with lr {config.lr:g}; give a smaller one")
        self._net = net.eval()

    @torch.inference_mode()
    def estimate(self, graphs: Graphs) -> tuple[Floats, Floats | None]:
        assert graphs.attributes is not None
        if (given := graphs.attributes.shape[1]) != self._attributes:
            raise GraphError(f"graphs with {given} attributes; this model reads {self._attributes} of them")
        static = torch.from_numpy(log_static(graphs)).float()
        found = np.empty(len(graphs))
        chunk = np.cumsum(graphs.sizes) // CHUNK_NODES
        for number in np.unique(chunk):
            rows = np.flatnonzero(chunk == number)
            found[rows] = self._net(PackedBatch.of(graphs.take(rows)), static[rows]).double().exp().numpy()
        return found, None

    def tensors(self) -> dict[str, Tensor]:
        return dict(self._net.state_dict())

    def restore(self, header: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
        attributes = (tensors["embed.weight"].shape[1] - KINDS - 80) // 10
        with torch.device("meta"):
            net = SageNet(self.config, attributes)
        net.load_state_dict(dict(tensors), assign=True)
        if not all(x.dtype == torch.float32 and bool(torch.isfinite(x).all()) for x in tensors.values()):
            raise DataError("a weight is no finite number")
        self._net = net.eval()


class GraphSagePricedModel(Priced, GraphSageModel):
    """The same, which learns a factor on the priced operators."""

    name = "graphsage-priced"
    reads = (*GraphSageModel.reads, "costs")


def _rate(step: int, steps: int) -> float:
    """Share of the peak learning rate."""
    warm = WARMUP * steps
    if step < warm:
        return (step + 1) / (warm + 1)
    return 0.5 * (1 + math.cos(math.pi * (step - warm) / max(1.0, steps - warm)))
