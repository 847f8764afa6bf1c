"""Training of NN-Former."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from nas_core.checks import Range, check_fields
from nas_core.errors import ConfigError
from nas_core.graph import Graphs
from nas_core.precision import check_precision, computing_in
from nas_core.predictor.artifact import below
from nas_core.predictor.device import CHOICES, chosen_precision, on_host, to_device
from nas_core.predictor.losses import log_loss, ranking_loss, relative_loss
from nas_core.predictor.nn_former.batch import TOKENS, Batch, Topology
from nas_core.predictor.nn_former.model import NNFormer
from nas_core.predictor.nn_former.packed import PACKED_FROM, PackedBatch, PackedTopology, packable
from nas_core.predictor.progress import EVERY
from nas_core.random_streams import seed_streams

_RANGES = {
    "epochs": Range(1),
    "batch_size": Range(1),
    "copies": Range(1, 2),
    "lr": Range(0, exclude=(0,)),
    "warmup": Range(0, 1, exclude=(1,)),
    "final_lr": Range(0, 1),
    "weight_decay": Range(0),
    "rank_weight": Range(0),
    "consistency_weight": Range(0),
    "ema": Range(0, 1, exclude=(1,)),
    "clip": Range(0),
    "seed": Range(0),
}


@dataclass(frozen=True)
class TrainConfig:
    """Settings of the training of NN-Former; defaults are those of its paper for accuracy (supplement, 2.1)."""

    epochs: int = 3000
    """Training epochs."""
    batch_size: int = 128
    """Graphs per training step."""
    copies: int = 2
    """Copies of each graph in its batch; the consistency loss needs two."""
    lr: float = 1e-4
    """Peak learning rate of AdamW."""
    warmup: float = 0.1
    """Fraction of the steps for the linear warm-up from 0."""
    decay: str = field(default="cosine", metadata={"choices": ("cosine", "linear")})
    """Shape of the learning rate decay after the peak: cosine or linear."""
    final_lr: float = 0.1
    """Final learning rate, as a fraction of the peak; 0.1 in the released code."""
    weight_decay: float = 0.01
    """Weight decay of matrices; vectors (norms, biases) have none."""
    loss: str = field(default="mse", metadata={"choices": ("mse", "relative", "log")})
    """mse; or for latencies, relative: squared relative error, or log: squared error of the logarithm."""
    rank_weight: float = 0.2
    """Weight of the L1 loss of the difference to one other graph."""
    consistency_weight: float = 1.0
    """Weight of the L1 distance between the predictions of two copies of a graph, which differ by dropout."""
    ema: float = 0.99
    """Decay of the moving average of weights, which is used for prediction; 0: no average."""
    clip: float = 0.0
    """Maximum norm of the gradient; 0: no limit."""
    equal_sizes: bool = True
    """True: all graphs of a batch have the same size, as in the released code."""
    precision: str = field(default="auto", metadata={"choices": CHOICES})
    """fp32 or bf16; auto: bf16 if the device supports it, otherwise fp32."""
    seed: int = 0
    """Seed of weights, dropout and batches."""

    def __post_init__(self) -> None:
        check_fields(self, "training", _RANGES)
        if self.consistency_weight and self.copies == 1:
            raise ConfigError(
                f"consistency_weight is {self.consistency_weight:g} with one copy of each graph; give copies=2, or"
                " consistency_weight=0"
            )


# number of positions (nodes and tokens), and minimum number of graphs, of the chunks of a batch on a CPU
CHUNK_POSITIONS, CHUNK_GRAPHS = 2400, 16
SMALL = 32  # maximum number of nodes of graphs whose attention masks are stored for the whole training
RESIDENT_BYTES = 2 * 2**30  # maximum bytes of padded adjacency matrices that are stored on the device

LoadedBatch = tuple[Batch | PackedBatch, Topology | PackedTopology, Tensor]
"""Graphs, their attention masks, and their targets ``(B,)``."""


class Bucket:
    """Training graphs from which batches are drawn, kept on the device if they are few and small.

    Args:
        rows: indices of these graphs in ``graphs`` and ``targets``.
    """

    def __init__(self, graphs: Graphs, rows: NDArray[np.int64], targets: NDArray[np.float32], model: NNFormer) -> None:
        self.config = model.config
        self.device = next(model.parameters()).device
        self.graphs = graphs if len(rows) == len(graphs) else graphs.take(rows)
        self.targets = to_device(targets[rows], self.device)
        self.largest = int(self.graphs.sizes.max(initial=0))
        self.packs = packable(self.config) and self.graphs.sizes.mean() >= PACKED_FROM
        fits = len(rows) * self.largest**2 <= RESIDENT_BYTES
        self.batch = Batch.of(self.graphs, device=self.device) if fits and not self.packs else None
        small = self.batch is not None and self.largest <= SMALL
        self.topology = Topology.of(self.batch, self.config) if small and self.batch is not None else None

    def __len__(self) -> int:
        return len(self.graphs)

    def chunk_count(self, count: int) -> int:
        """Return the number of chunks of a batch of ``count`` graphs."""
        # on a CPU the activations of a chunk fit its cache
        if self.packs or not on_host(self.device):
            return 1
        tokens = TOKENS if self.config.readout == "class_token" else 0
        return math.ceil(count / max(CHUNK_GRAPHS, CHUNK_POSITIONS // (self.largest + tokens)))

    def take(self, rows: NDArray[np.int64], index: Tensor, copies: int) -> LoadedBatch:
        """Return ``copies`` copies of graphs, given by the same indices on the host and on the device."""
        tiled, index = np.tile(rows, copies), index.repeat(copies)
        if self.packs:
            packed = PackedBatch.of(self.graphs.take(tiled), self.device)
            topology = PackedTopology.of(packed.edges, packed.ops.numel(), self.device)
            return packed, topology, self.targets[index]
        batch = Batch.of(self.graphs, tiled, self.device) if self.batch is None else self.batch.take(index)
        dense = Topology.of(batch, self.config) if self.topology is None else self.topology.take(index)
        return batch, dense, self.targets[index]


CHECK_EVERY = EVERY  # number of steps between checks of the loss; each check waits for the device


class Trainer:
    """Training of one NN-Former; each item of :meth:`steps` is one update."""

    def __init__(
        self, model: NNFormer, graphs: Graphs, targets: NDArray[np.floating[Any]], config: TrainConfig
    ) -> None:
        self.model, self.config = model, config
        self.device = next(model.parameters()).device
        self.precision = check_precision(chosen_precision(config.precision, self.device), self.device)
        values = np.asarray(targets, np.float32)
        groups = [np.flatnonzero(graphs.sizes == size) for size in np.unique(graphs.sizes)]
        if not config.equal_sizes:
            groups = [np.arange(len(graphs))]
        self.buckets = [Bucket(graphs, rows, values, model) for rows in groups]
        self.steps_per_epoch = sum(math.ceil(len(bucket) / config.batch_size) for bucket in self.buckets)
        self.total = config.epochs * self.steps_per_epoch
        self.done = 0
        matrices = [p for p in model.parameters() if p.ndim > 1]
        vectors = [p for p in model.parameters() if p.ndim <= 1]
        self.optimizer = torch.optim.AdamW(
            [{"params": matrices, "weight_decay": config.weight_decay}, {"params": vectors, "weight_decay": 0.0}],
            lr=config.lr,
            fused=self.device.type in ("cpu", "cuda"),
        )
        self.averaged = [p.detach().clone() for p in model.parameters()] if config.ema else []

    def steps(self) -> Iterator[Tensor]:
        """Run the remaining updates and yield their losses.

        Raises:
            ConfigError: the loss is not finite.
            GraphError: a graph has more nodes, or another operation, than the model supports.
        """
        while self.done < self.total:
            batches = self._epoch()
            for bucket, rows, index in batches[self.done % self.steps_per_epoch :]:
                loss = self._step(bucket, rows, index)
                if (self.done % CHECK_EVERY == 0 or self.finished) and not math.isfinite(loss):
                    raise self._diverged(f"the loss is {loss:g}")
                yield loss

    @property
    def finished(self) -> bool:
        return self.done == self.total

    def check(self) -> None:
        """Raise a ConfigError if the training diverged: a weight of the network is NaN or infinite."""
        if not all(bool(torch.isfinite(parameter).all()) for parameter in self.model.parameters()):
            raise self._diverged("a weight is not finite")

    def _diverged(self, reason: str) -> ConfigError:
        return ConfigError(
            f"training diverged: {reason} after step {self.done} of {self.total}; give a lower lr (it is"
            f" {self.config.lr:g}), or limit the gradient norm with clip (it is {self.config.clip:g})"
        )

    def _epoch(self) -> list[tuple[Bucket, NDArray[np.int64], Tensor]]:
        stream = np.random.default_rng([self.config.seed, 1, self.done // self.steps_per_epoch])
        batches, size = [], self.config.batch_size
        for bucket in self.buckets:
            order = stream.permutation(len(bucket))
            index = to_device(order, bucket.device)
            batches += [(bucket, order[i : i + size], index[i : i + size]) for i in range(0, len(bucket), size)]
        return [batches[i] for i in stream.permutation(len(batches))]

    def _step(self, bucket: Bucket, indices: NDArray[np.int64], index: Tensor) -> Tensor:
        config, count = self.config, len(indices)
        # Dropout of a step depends on the seed and its number alone.
        seed_streams((config.seed * 1_000_003 + self.done) % 2**63, self.device)
        for group in self.optimizer.param_groups:
            group["lr"] = config.lr * self.lr_factor(self.done)
        self.model.train()
        self.optimizer.zero_grad(set_to_none=True)
        chunks = bucket.chunk_count(count)
        losses = [
            self._gradients(bucket, rows, index_chunk, len(rows) / count)
            for rows, index_chunk in zip(np.array_split(indices, chunks), index.tensor_split(chunks), strict=True)
        ]
        if config.clip:
            nn.utils.clip_grad_norm_(self.model.parameters(), config.clip)
        self.optimizer.step()
        if self.averaged:
            with torch.no_grad():
                torch._foreach_lerp_(self.averaged, list(self.model.parameters()), 1 - config.ema)
        self.done += 1
        return torch.stack(losses).sum()

    def _gradients(self, bucket: Bucket, rows: NDArray[np.int64], index: Tensor, share: float) -> Tensor:
        batch, topology, target = bucket.take(rows, index, self.config.copies)
        with computing_in(self.precision, self.device):
            predicted = self.model(batch, topology)
        loss = self.loss_of(predicted, target, len(rows)) * share
        loss.backward()  # type: ignore[no-untyped-call]
        return loss.detach()

    def loss_of(self, predicted: Tensor, target: Tensor, count: int) -> Tensor:
        """Return the loss of predictions for ``count`` graphs, or for these and then their second copies."""
        config = self.config
        if config.loss == "relative":
            loss = 2 * relative_loss(predicted, target)
        elif config.loss == "log":
            loss = log_loss(predicted, target)
        else:
            loss = (predicted - target).square().mean()
        if config.rank_weight:
            order = torch.randperm(len(predicted), device=predicted.device)
            loss = loss + config.rank_weight * ranking_loss(predicted, target, order)
        if config.consistency_weight:
            loss = loss + config.consistency_weight * (predicted[:count] - predicted[count:]).abs().mean()
        return loss

    def lr_factor(self, step: int) -> float:
        """Return the learning rate of a step as a fraction of the peak."""
        config, warm = self.config, self.config.warmup * self.total
        if step < warm:
            return step / warm
        progress = (step - warm) / max(1.0, self.total - warm)
        factor = 0.5 * (1 + math.cos(math.pi * progress)) if config.decay == "cosine" else 1 - progress
        return config.final_lr + (1 - config.final_lr) * factor

    def state(self) -> dict[str, Tensor]:
        """Return the training state, from which :meth:`restore` continues exactly."""
        self.check()
        named = {"done": torch.tensor(self.done)}
        named |= {f"model.{name}": value for name, value in self.model.state_dict().items()}
        named |= {f"averaged.{i}": value for i, value in enumerate(self.averaged)}
        for i, entry in self.optimizer.state_dict()["state"].items():
            named |= {f"optimizer.{i}.{name}": value for name, value in entry.items()}
        return named

    def restore(self, named: dict[str, Tensor]) -> None:
        self.model.load_state_dict(below("model.", named))
        self.averaged = [named[f"averaged.{i}"].to(x.device) for i, x in enumerate(self.averaged)]
        moments: dict[int, dict[str, Tensor]] = {}
        for name, value in named.items():
            if name.startswith("optimizer."):
                _, index, moment = name.split(".", 2)
                moments.setdefault(int(index), {})[moment] = value
        self.optimizer.load_state_dict({**self.optimizer.state_dict(), "state": moments})
        self.done = int(named["done"])

    def settle(self) -> None:
        """Load the moving averages of the weights, if computed, into the model."""
        self.check()
        if self.averaged:
            with torch.no_grad():
                torch._foreach_copy_(list(self.model.parameters()), self.averaged)
