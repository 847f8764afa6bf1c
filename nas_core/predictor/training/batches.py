"""Training graphs on the device, with what is known of their relatives, and batches of them."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from nas_core.graph import Graphs
from nas_core.predictor.nn_former.batch import TOKENS, Batch, Topology
from nas_core.predictor.nn_former.model import NNFormer
from nas_core.predictor.nn_former.packed import PACKED_FROM, PackedBatch, PackedTopology, packable
from nas_core.predictor.nn_former.packed_set import PackedSet
from nas_core.predictor.nn_former.place import on_host, uploaded

__all__ = ["Bucket", "epoch_of"]

PART_POSITIONS, PART_GRAPHS = 2400, 16
"""A batch on a CPU is computed in parts of about so many positions, and of at least so many graphs. Graphs are then
compared to others of their part, a random subset of the batch."""
SMALL = 32
"""Nodes of graphs whose masks are kept for the whole training."""
RESIDENT_BYTES = 2 * 2**30
"""Adjacency matrices of larger graphs that are kept on a device."""

Part = tuple[Batch | PackedBatch, Topology | PackedTopology, Tensor]
"""Graphs, their relatives, and their targets ``(B,)``."""


class Bucket:
    """Training graphs that meet in batches; an accelerator holds all of them."""

    def __init__(self, graphs: Graphs, rows: NDArray[np.int64], targets: NDArray[np.float32], model: NNFormer) -> None:
        self.config = model.config
        self.device = next(model.parameters()).device
        self.graphs = graphs if len(rows) == len(graphs) else graphs.take(rows)
        self.targets = uploaded(targets[rows], self.device)
        self.largest = int(self.graphs.sizes.max(initial=0))
        self.packs = packable(self.config) and self.graphs.sizes.mean() >= PACKED_FROM
        self.set = PackedSet.of(self.graphs, self.config, self.device) if self.packs else None
        fits = not on_host(self.device) and len(rows) * self.largest**2 <= RESIDENT_BYTES
        kept = not self.packs and (self.largest <= SMALL or fits)
        self.batch = Batch.of(self.graphs, device=self.device) if kept else None
        small = self.batch is not None and self.largest <= SMALL
        self.topology = Topology.of(self.batch, self.config) if small and self.batch is not None else None

    def __len__(self) -> int:
        return len(self.graphs)

    def parts(self, count: int) -> int:
        """In how many parts a batch of so many graphs is computed: on a CPU activations stay in its cache."""
        if self.packs or not on_host(self.device):
            return 1
        tokens = TOKENS if self.config.readout == "class_token" else 0
        return math.ceil(count / max(PART_GRAPHS, PART_POSITIONS // (self.largest + tokens)))

    def take(self, chosen: NDArray[np.int64], index: Tensor, copies: int) -> Part:
        """So many copies of those graphs, one copy after another; ``index`` is ``chosen`` on the device."""
        twice, index = np.tile(chosen, copies), index.repeat(copies)
        if self.set is not None:
            return *self.set.take(twice, index), self.targets[index]
        batch = Batch.of(self.graphs, twice, self.device) if self.batch is None else self.batch.take(index)
        topology = Topology.of(batch, self.config) if self.topology is None else self.topology.take(index)
        return batch, topology, self.targets[index]


def epoch_of(
    buckets: list[Bucket], size: int, stream: np.random.Generator
) -> list[tuple[Bucket, NDArray[np.int64], Tensor]]:
    """All batches of an epoch in the order drawn from ``stream``: graphs of one bucket, by their numbers on the host
    and on the device, where these are sent once."""
    batches = []
    for bucket in buckets:
        order = stream.permutation(len(bucket))
        there = uploaded(order, bucket.device)
        batches += [(bucket, order[i : i + size], there[i : i + size]) for i in range(0, len(bucket), size)]
    return [batches[i] for i in stream.permutation(len(batches))]
