"""The GraphSAGE latency model: training and prediction."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from nas_core.device import device_name
from nas_core.errors import ConfigError, DataError
from nas_core.graph import GraphError, Graphs
from nas_core.graph.onnx.operators import KINDS
from nas_core.latency.by_graph.base import Floats, GraphLatencyModel, Progress
from nas_core.latency.by_graph.data import NetworkLatencies
from nas_core.latency.by_graph.priced import Priced
from nas_core.latency.by_graph.prices import check_kinds, log_static
from nas_core.latency.by_graph.sage_net import SageConfig, SageNet, neighbours_of
from nas_core.precision import check_precision, computing_in, tf32
from nas_core.predictor.nn_former.model import scale_of
from nas_core.predictor.nn_former.packed import Matrices, PackedBatch, PackedSet, Pairs
from nas_core.predictor.nn_former.place import uploaded
from nas_core.predictor.precision import chosen_precision, usable_precision
from nas_core.predictor.training.losses import log_loss
from nas_core.predictor.training.progress import Losses
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
        check_kinds(graphs)

    @property
    def _attributes(self) -> int:
        return (self._net.embed.in_features - KINDS - 80) // 10

    def learn(self, data: NetworkLatencies, seed: int, progress: Progress | None) -> None:
        graphs, config, device = data.graphs, self.config, self.device
        assert graphs.attributes is not None
        precision = check_precision(chosen_precision(config.precision, device), device)
        stream, count = np.random.default_rng([seed, 3]), len(graphs)
        logarithms = torch.from_numpy(log_static(graphs)).float()
        latency_ms = torch.from_numpy(data.latency_ms).float()
        packed = PackedSet(graphs, Matrices((neighbours_of(graphs),), ()), device)
        static, targets = logarithms.to(device), latency_ms.to(device)
        with own_streams(seed, device), tf32(precision == "tf32"):
            net = SageNet(config, graphs.attributes.shape[1])
            net.scale = scale_of(torch.cat([logarithms, latency_ms.log().unsqueeze(-1)], -1).T)
            net.to(device).train()
            fused = device.type in ("cpu", "cuda")
            optimizer = torch.optim.AdamW(net.parameters(), config.lr, weight_decay=config.weight_decay, fused=fused)
            scaler = torch.amp.GradScaler(device.type, enabled=precision == "fp16")
            steps = config.epochs * math.ceil(count / config.batch_size)
            schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: _rate(step, steps))
            losses = Losses(progress, steps)
            for _ in range(config.epochs):
                order = stream.permutation(count)
                there = uploaded(order, device)
                for start in range(0, count, config.batch_size):
                    part = slice(start, start + config.batch_size)
                    batch, topology = packed.take(order[part], there[part])
                    with computing_in(precision, device):
                        predicted = net(batch, topology.heads[0], static[there[part]])
                    loss = log_loss(predicted.exp(), targets[there[part]])
                    optimizer.zero_grad()
                    scaler.scale(loss).backward()  # type: ignore[no-untyped-call]
                    scaler.unscale_(optimizer)
                    torch.nn.utils.clip_grad_norm_(net.parameters(), config.clip)
                    scaler.step(optimizer)
                    scaler.update()
                    schedule.step()
                    losses.add(loss.detach())
            losses.tell()
            if not math.isfinite(float(loss.detach())):
                raise ConfigError(f"GraphSAGE diverged with lr {config.lr:g}; give a smaller one")
        self._net = net.eval()

    def facts(self) -> dict[str, Any]:
        precision = chosen_precision(self.config.precision, self.device)
        return {"trained_on": {"device": device_name(self.device), "precision": precision}}

    def move(self) -> None:
        if self.known:
            self._net.to(self.device)

    @torch.inference_mode()
    def estimate(self, graphs: Graphs) -> tuple[Floats, Floats | None]:
        assert graphs.attributes is not None
        if (given := graphs.attributes.shape[1]) != self._attributes:
            raise GraphError(f"graphs with {given} attributes; this model reads {self._attributes} of them")
        chunk = np.cumsum(graphs.sizes) // CHUNK_NODES
        parts = [np.flatnonzero(chunk == number) for number in np.unique(chunk)]
        predicted = torch.cat([self._predicted(graphs.take(rows)) for rows in parts])
        return predicted.double().exp().cpu().numpy(), None

    def _predicted(self, graphs: Graphs) -> Tensor:
        """log ms ``(B,)``, on the device."""
        neighbours = Pairs.of(neighbours_of(graphs), self.device, trained=False)
        static = uploaded(log_static(graphs).astype(np.float32), self.device)
        with computing_in(usable_precision(self.config.precision, self.device), self.device):
            predicted: Tensor = self._net(PackedBatch.of(graphs, self.device), neighbours, static)
        return predicted

    def tensors(self) -> dict[str, Tensor]:
        return dict(self._net.state_dict())

    def restore(self, header: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
        attributes = (tensors["embed.weight"].shape[1] - KINDS - 80) // 10
        with torch.device("meta"):
            net = SageNet(self.config, attributes)
        net.load_state_dict(dict(tensors), assign=True)
        if not all(x.dtype == torch.float32 and bool(torch.isfinite(x).all()) for x in tensors.values()):
            raise DataError("a weight is no finite number")
        self._net = net.to(self.device).eval()


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
