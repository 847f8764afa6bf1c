"""Training of a predictor: batches of equal-sized graphs, each graph twice, warm-up and cosine, averaged weights."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from nas_core.errors import ConfigError, unknown_choice
from nas_core.graph import Graphs
from nas_core.predictor.batch import TOKENS, Batch, Topology
from nas_core.predictor.losses import pairwise_loss, ranking_loss, relative_loss
from nas_core.predictor.model import NNFormer

__all__ = ["TrainConfig", "Trainer", "autocast", "fast_dtype"]

PART_POSITIONS, PART_GRAPHS = 2400, 16
"""A batch on a CPU is computed in parts of about so many positions, and of at least so many graphs. Graphs are then
compared to others of their part, a random subset of the batch."""


@dataclass(frozen=True)
class TrainConfig:
    """How a predictor is trained; the defaults are the paper's for accuracy (its supplement, 2.1)."""

    epochs: int = 3000
    """Passes over the training graphs."""
    batch_size: int = 128
    """Graphs per step; each is in the batch twice."""
    lr: float = 1e-4
    """Peak learning rate of AdamW."""
    warmup: float = 0.1
    """Share of the steps until the peak, linear from 0."""
    decay: str = "cosine"
    """Shape of the learning rate after the peak: cosine or linear."""
    final_lr: float = 0.1
    """Learning rate at the end, as a share of the peak."""
    weight_decay: float = 0.01
    """Of matrices; vectors (norms, biases) have none."""
    loss: str = "mse"
    """mse, or relative: squared relative error, for latencies."""
    rank_weight: float = 0.2
    """Of the L1 loss of differences to one other graph each."""
    pair_weight: float = 0.0
    """Of the logistic loss of all pairs in the batch."""
    pair_temperature: float = 0.02
    """Difference of predictions that the logistic loss sees as one."""
    consistency_weight: float = 1.0
    """Of the L1 distance between the two predictions of a graph, which differ by dropout."""
    ema: float = 0.99
    """Decay of the averaged weights, which predict in the end; 0: no average."""
    clip: float = 0.0
    """Largest norm of the gradient; 0: no limit."""
    equal_sizes: bool = True
    """A batch holds graphs of one size (the released code's rule; it sets the number of steps), or of all sizes."""
    precision: str = "auto"
    """bf16 or fp32 for matrix products; auto: bf16 where the device computes in it."""
    seed: int = 0
    """Of weights, dropout and batches."""

    def __post_init__(self) -> None:
        for name, allowed in (
            ("loss", ("mse", "relative")),
            ("decay", ("cosine", "linear")),
            ("precision", ("auto", "bf16", "fp32")),
        ):
            if getattr(self, name) not in allowed:
                raise unknown_choice(f"{name} of training", getattr(self, name), allowed)
        if (
            self.epochs < 1
            or self.batch_size < 1
            or not self.lr > 0
            or not 0 <= self.warmup < 1
            or not 0 <= self.ema < 1
        ):
            raise ConfigError(
                f"epochs {self.epochs}, batch_size {self.batch_size}, lr {self.lr}, warmup {self.warmup},"
                f" ema {self.ema}; expected epochs and batch_size >= 1, lr > 0, 0 <= warmup < 1, 0 <= ema < 1"
            )


def fast_dtype(device: torch.device) -> torch.dtype:
    """bfloat16 where the device multiplies in it, else float32."""
    if device.type == "cuda":
        return torch.bfloat16 if torch.cuda.is_bf16_supported() else torch.float32
    supported = device.type == "cpu" and torch.ops.mkldnn._is_mkldnn_bf16_supported()
    return torch.bfloat16 if supported else torch.float32


def autocast(precision: str, device: torch.device) -> contextlib.AbstractContextManager[Any]:
    """Context in which matrix products run in that precision."""
    dtype = {"bf16": torch.bfloat16, "fp32": torch.float32}.get(precision) or fast_dtype(device)
    return contextlib.nullcontext() if dtype == torch.float32 else torch.autocast(device.type, dtype)


class _Bucket:
    """Training graphs of one size, with their topology, on the device."""

    def __init__(self, graphs: Graphs, rows: NDArray[np.int64], targets: Tensor, model: NNFormer) -> None:
        device = next(model.parameters()).device
        self.rows, self.graphs, self.model, self.device = rows, graphs, model, device
        self.targets = targets[torch.from_numpy(rows)].to(device)
        small = int(graphs.sizes[rows].max(initial=0)) <= 32
        self.batch = Batch.of(graphs, rows, device) if small else None
        self.topology = None if self.batch is None else Topology.of(self.batch, model.config)

    def __len__(self) -> int:
        return len(self.rows)

    def parts(self, count: int) -> int:
        """In how many parts a batch of so many graphs is computed: on a CPU activations stay in its cache."""
        if self.device.type != "cpu":
            return 1
        tokens = TOKENS if self.model.config.readout == "class_token" else 0
        most = max(PART_GRAPHS, PART_POSITIONS // (int(self.graphs.sizes[self.rows].max(initial=0)) + tokens))
        return math.ceil(count / most)

    def take(self, chosen: NDArray[np.int64], copies: int) -> tuple[Batch, Topology, Tensor]:
        twice = np.tile(chosen, copies)
        index = torch.from_numpy(twice).to(self.device)
        if self.batch is None or self.topology is None:
            batch = Batch.of(self.graphs, self.rows[twice], self.device)
            return batch, Topology.of(batch, self.model.config), self.targets[index]
        return self.batch.take(index), self.topology.take(index), self.targets[index]


class Trainer:
    """Trains one model on graphs and targets; :meth:`steps` does the work, one update per item."""

    def __init__(
        self, model: NNFormer, graphs: Graphs, targets: NDArray[np.floating[Any]], config: TrainConfig
    ) -> None:
        self.model, self.config = model, config
        values = torch.from_numpy(np.asarray(targets, np.float32))
        groups = [np.flatnonzero(graphs.sizes == size) for size in np.unique(graphs.sizes)]
        if not config.equal_sizes:
            groups = [np.arange(len(graphs))]
        self.buckets = [_Bucket(graphs, rows, values, model) for rows in groups]
        self.steps_per_epoch = sum(math.ceil(len(bucket) / config.batch_size) for bucket in self.buckets)
        self.total = config.epochs * self.steps_per_epoch
        self.done = 0
        device = next(model.parameters()).device
        matrices = [p for p in model.parameters() if p.ndim > 1]
        vectors = [p for p in model.parameters() if p.ndim <= 1]
        self.optimizer = torch.optim.AdamW(
            [{"params": matrices, "weight_decay": config.weight_decay}, {"params": vectors, "weight_decay": 0.0}],
            lr=torch.tensor(config.lr) if device.type == "cuda" else config.lr,
            fused=device.type in ("cpu", "cuda"),
        )
        self.averaged = [p.detach().clone() for p in model.parameters()] if config.ema else []

    def steps(self) -> Iterator[Tensor]:
        """One update after another, from where the trainer stands to the end; yields the loss."""
        while self.done < self.total:
            plan = self._epoch()
            for bucket, chosen in plan[self.done % self.steps_per_epoch :]:
                yield self._step(bucket, chosen)

    def _epoch(self) -> list[tuple[_Bucket, NDArray[np.int64]]]:
        """Batches of the epoch that ``done`` lies in; drawn from its number, so that resumed runs repeat them."""
        stream = np.random.default_rng([self.config.seed, 1, self.done // self.steps_per_epoch])
        batches = []
        for bucket in self.buckets:
            order = stream.permutation(len(bucket))
            batches += [
                (bucket, order[i : i + self.config.batch_size]) for i in range(0, len(bucket), self.config.batch_size)
            ]
        return [batches[i] for i in stream.permutation(len(batches))]

    def _step(self, bucket: _Bucket, chosen: NDArray[np.int64]) -> Tensor:
        config, count = self.config, len(chosen)
        self._seed()
        for group in self.optimizer.param_groups:
            _set_lr(group, config.lr * self._share(self.done))
        self.model.train()
        self.optimizer.zero_grad(set_to_none=True)
        losses = []
        for part in np.array_split(chosen, bucket.parts(count)):
            batch, topology, target = bucket.take(part, 2)
            with autocast(config.precision, batch.ops.device):
                predicted = self.model(batch, topology)
            loss = self._loss(predicted, target, len(part)) * (len(part) / count)
            loss.backward()  # type: ignore[no-untyped-call]
            losses.append(loss.detach())
        if config.clip:
            nn.utils.clip_grad_norm_(self.model.parameters(), config.clip)
        self.optimizer.step()
        if self.averaged:
            with torch.no_grad():
                torch._foreach_lerp_(self.averaged, list(self.model.parameters()), 1 - config.ema)
        self.done += 1
        return torch.stack(losses).sum()

    def _loss(self, predicted: Tensor, target: Tensor, count: int) -> Tensor:
        config = self.config
        if config.loss == "relative":
            loss = 2 * relative_loss(predicted, target)
        else:
            loss = (predicted - target).square().mean()
        if config.rank_weight:
            order = torch.randperm(len(predicted), device=predicted.device)
            loss = loss + config.rank_weight * ranking_loss(predicted, target, order)
        if config.pair_weight:
            loss = loss + config.pair_weight * pairwise_loss(predicted, target, config.pair_temperature)
        if config.consistency_weight:
            loss = loss + config.consistency_weight * (predicted[:count] - predicted[count:]).abs().mean()
        return loss

    def _share(self, step: int) -> float:
        """Learning rate of a step as a share of the peak."""
        config, warm = self.config, self.config.warmup * self.total
        if step < warm:
            return step / warm
        along = (step - warm) / max(1.0, self.total - warm)
        falling = 0.5 * (1 + math.cos(math.pi * along)) if config.decay == "cosine" else 1 - along
        return config.final_lr + (1 - config.final_lr) * falling

    def _seed(self) -> None:
        """Dropout of a step depends on the seed and its number alone."""
        torch.manual_seed((self.config.seed * 1_000_003 + self.done) % 2**63)

    def state(self) -> dict[str, Tensor]:
        """All that changes during training, by name; with the arguments of the trainer it continues identically."""
        named = {"done": torch.tensor(self.done)}
        named |= {f"model.{name}": value for name, value in self.model.state_dict().items()}
        named |= {f"averaged.{i}": value for i, value in enumerate(self.averaged)}
        for i, entry in self.optimizer.state_dict()["state"].items():
            named |= {f"optimizer.{i}.{name}": value for name, value in entry.items()}
        return named

    def restore(self, named: dict[str, Tensor]) -> None:
        """Inverse of :meth:`state`.

        Raises:
            KeyError, RuntimeError: it belongs to another model.
        """
        prefix = "model."
        self.model.load_state_dict({k[len(prefix) :]: v for k, v in named.items() if k.startswith(prefix)})
        self.averaged = [named[f"averaged.{i}"].to(x.device) for i, x in enumerate(self.averaged)]
        moments: dict[int, dict[str, Tensor]] = {}
        for name, value in named.items():
            if name.startswith("optimizer."):
                _, index, what = name.split(".", 2)
                moments.setdefault(int(index), {})[what] = value
        self.optimizer.load_state_dict({**self.optimizer.state_dict(), "state": moments})
        self.done = int(named["done"])

    def settle(self) -> None:
        """Give the model its averaged weights, which predict better than the last ones."""
        if self.averaged:
            with torch.no_grad():
                torch._foreach_copy_(list(self.model.parameters()), self.averaged)


def _set_lr(group: dict[str, Any], lr: float) -> None:
    if isinstance(group["lr"], Tensor):
        group["lr"].fill_(lr)
    else:
        group["lr"] = lr
