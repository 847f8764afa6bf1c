"""Fast inference of a trained NN-Former, once for each distinct graph."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nas_core.graph import Graphs
from nas_core.precision import check_precision, computing_in
from nas_core.predictor.device import chosen_precision, on_host
from nas_core.predictor.nn_former.batch import TOKENS, Batch
from nas_core.predictor.nn_former.frozen import FrozenDense, FrozenPacked
from nas_core.predictor.nn_former.model import NNFormer
from nas_core.predictor.nn_former.packed import PACKED_FROM, PackedBatch, packable

CHUNK_TOKENS = 5000  # nodes and tokens per chunk of FrozenDense on a CPU
# nodes per chunk of other models and of packed graphs: on the CPU, and on an accelerator
CHUNK_NODES, DEVICE_CHUNK_NODES = 1500, 24_000


class Scorer:
    """Trained NN-Former for fast inference. Later changes of its weights have no effect.

    Args:
        precision: fp32, bf16, or auto: bf16 if the device supports it, otherwise fp32.
    """

    @torch.inference_mode()
    def __init__(self, model: NNFormer, precision: str = "auto") -> None:
        self.model = model.eval()
        self.device = next(model.parameters()).device
        self.precision = check_precision(chosen_precision(precision, self.device), self.device)
        dtype = torch.bfloat16 if self.precision == "bf16" else torch.float32
        self.dense = FrozenDense(model, dtype) if FrozenDense.supports(model) else None
        self.packed = FrozenPacked(model, dtype) if FrozenPacked.supports(model) else None

    @torch.inference_mode()
    def __call__(self, graphs: Graphs) -> NDArray[np.float64]:
        if len(graphs) == 1 and self.dense is not None:  # searches ask one by one
            return self.dense(Batch.of(graphs, device=self.device)).double().cpu().numpy()
        distinct, inverse = graphs.distinct()
        if not len(distinct):
            return np.zeros(0)
        blocks = [(rows, self._block(distinct.take(rows))) for rows in self.blocks(distinct)]
        scores = np.zeros(len(distinct))
        predicted = torch.cat([output for _, output in blocks]).double().cpu().numpy()
        scores[np.concatenate([rows for rows, _ in blocks])] = predicted
        return scores[inverse]

    def blocks(self, graphs: Graphs) -> Iterator[NDArray[np.int64]]:
        """Yield the indices of the graphs of each batch."""
        host = on_host(self.device)
        nodes = CHUNK_NODES if host else DEVICE_CHUNK_NODES
        if self._use_packed(graphs):
            order = np.argsort(graphs.sizes, kind="stable")
            filled = np.cumsum(graphs.sizes[order]) // nodes
            yield from np.split(order, np.flatnonzero(np.diff(filled)) + 1)
            return
        for size in np.unique(graphs.sizes).tolist():
            dense = host and self.dense is not None
            chunk = max(1, CHUNK_TOKENS // (size + TOKENS) if dense else nodes // size)
            rows = np.flatnonzero(graphs.sizes == size)
            yield from (rows[start : start + chunk] for start in range(0, len(rows), chunk))

    def _use_packed(self, graphs: Graphs) -> bool:
        return packable(self.model.config) and bool(graphs.sizes.mean() >= PACKED_FROM)

    def _block(self, graphs: Graphs) -> Tensor:
        if self.dense is not None:
            return self.dense(Batch.of(graphs, device=self.device))
        packs = self._use_packed(graphs)
        if self.packed is not None and packs:
            return self.packed(graphs)
        batch = PackedBatch.of(graphs, self.device) if packs else Batch.of(graphs, device=self.device)
        with computing_in(self.precision, self.device):
            predicted: Tensor = self.model(batch)
        return predicted.float()
