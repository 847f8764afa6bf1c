"""Training of a predictor: batches of equal-sized graphs, each graph twice, warm-up and cosine, averaged weights."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from nas_core.errors import ConfigError
from nas_core.graph import Graphs
from nas_core.predictor.nn_former.batch import TOKENS, Batch, Topology
from nas_core.predictor.nn_former.model import NNFormer
from nas_core.predictor.nn_former.packed import PACKED_FROM, PackedBatch, PackedTopology, packable
from nas_core.predictor.training.config import TrainConfig
from nas_core.predictor.training.losses import log_loss, pairwise_loss, ranking_loss, relative_loss

__all__ = ["TrainConfig", "Trainer", "autocast", "fast_dtype"]

PART_POSITIONS, PART_GRAPHS = 2400, 16
"""A batch on a CPU is computed in parts of about so many positions, and of at least so many graphs. Graphs are then
compared to others of their part, a random subset of the batch."""
CHECKED = 50
"""Steps between two looks at the loss; each look waits for the device."""


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
        self.packs = packable(model.config) and graphs.sizes[rows].mean() >= PACKED_FROM
        self.batch = Batch.of(graphs, rows, device) if small and not self.packs else None
        self.topology = None if self.batch is None else Topology.of(self.batch, model.config)

    def __len__(self) -> int:
        return len(self.rows)

    def parts(self, count: int) -> int:
        """In how many parts a batch of so many graphs is computed: on a CPU activations stay in its cache."""
        if self.device.type != "cpu" or self.packs:
            return 1
        tokens = TOKENS if self.model.config.readout == "class_token" else 0
        most = max(PART_GRAPHS, PART_POSITIONS // (int(self.graphs.sizes[self.rows].max(initial=0)) + tokens))
        return math.ceil(count / most)

    def take(
        self, chosen: NDArray[np.int64], copies: int
    ) -> tuple[Batch | PackedBatch, Topology | PackedTopology, Tensor]:
        twice = np.tile(chosen, copies)
        index = torch.from_numpy(twice).to(self.device)
        if self.packs:
            packed = PackedBatch.of(self.graphs.take(self.rows[twice]), self.device)
            known = PackedTopology.of(packed.edges, packed.sizes.tolist(), self.model.config, self.device)
            return packed, known, self.targets[index]
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
        """One update after another, from where the trainer stands to the end; yields the loss.

        Raises:
            ConfigError: the loss is no finite number, found at the latest after :data:`CHECKED` steps or at the end.
        """
        while self.done < self.total:
            plan = self._epoch()
            for bucket, chosen in plan[self.done % self.steps_per_epoch :]:
                loss = self._step(bucket, chosen)
                if (self.done % CHECKED == 0 or self.done == self.total) and not math.isfinite(loss):
                    raise self._diverged(f"the loss is {loss:g}")
                yield loss

    def check(self) -> None:
        """Raise a ConfigError where a weight is no finite number."""
        if not all(bool(torch.isfinite(parameter).all()) for parameter in self.model.parameters()):
            raise self._diverged("a weight is no finite number")

    def _diverged(self, what: str) -> ConfigError:
        return ConfigError(
            f"{what} after step {self.done} of {self.total}: training diverged; give a smaller lr (it is"
            f" {self.config.lr:g}), or a limit to the gradient with clip (it is {self.config.clip:g})"
        )

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
            _set_lr(group, config.lr * self.rate_share(self.done))
        self.model.train()
        self.optimizer.zero_grad(set_to_none=True)
        losses = []
        for part in np.array_split(chosen, bucket.parts(count)):
            batch, topology, target = bucket.take(part, config.copies)
            with autocast(config.precision, batch.ops.device):
                predicted = self.model(batch, topology)
            loss = self.loss_of(predicted, target, len(part)) * (len(part) / count)
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

    def loss_of(self, predicted: Tensor, target: Tensor, count: int) -> Tensor:
        """The loss of predictions for two copies of ``count`` graphs."""
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
        if config.pair_weight:
            loss = loss + config.pair_weight * pairwise_loss(predicted, target, config.pair_temperature)
        if config.consistency_weight:
            loss = loss + config.consistency_weight * (predicted[:count] - predicted[count:]).abs().mean()
        return loss

    def rate_share(self, step: int) -> float:
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
            KeyError, RuntimeError, ValueError: it belongs to another training.
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
        done = int(named["done"])
        if not 0 <= done <= self.total:
            raise ValueError(f"step {done} of {self.total}")
        self.done = done

    def settle(self) -> None:
        """Give the model its averaged weights, which predict better than the last ones.

        Raises:
            ConfigError: a weight is no finite number.
        """
        self.check()
        if self.averaged:
            with torch.no_grad():
                torch._foreach_copy_(list(self.model.parameters()), self.averaged)


def _set_lr(group: dict[str, Any], lr: float) -> None:
    if isinstance(group["lr"], Tensor):
        group["lr"].fill_(lr)
    else:
        group["lr"] = lr
