"""Scoring with shapes that never change, so that a CUDA device replays each forward pass as one recorded graph."""

from __future__ import annotations

import logging
from collections.abc import Callable

import torch
from torch import Tensor

from nas_core.predictor.nn_former.batch import Batch

__all__ = ["StaticForward"]

_log = logging.getLogger(__name__)

WARM_UP = 3
"""Passes before recording, in which libraries choose their kernels and take their memory."""

Forward = Callable[[Batch], Tensor]


class StaticForward:
    """A forward pass over batches that are padded to a fixed number of graphs, each of a fixed number of nodes.

    Launching the some hundred small kernels of a pass takes longer than computing them; a CUDA graph launches them at
    once. Where recording fails, passes run one by one, after one warning. On a CPU nothing is recorded.

    Args:
        forward: ``Batch -> (B,)`` without operations whose shapes depend on values, and without copies to the host.
        graphs: largest number of graphs in a batch.
        nodes: of every graph.
        device: where the weights are.
    """

    def __init__(self, forward: Forward, graphs: int, nodes: int, device: torch.device) -> None:
        self._forward = forward
        self.batch = Batch(
            torch.zeros(graphs, nodes, dtype=torch.int64, device=device),
            torch.zeros(graphs, nodes, nodes, dtype=torch.bool, device=device),
            torch.full((graphs,), nodes, device=device),
        )
        self._output: Tensor | None = None
        self._graph = self._recorded() if device.type == "cuda" else None

    def _recorded(self) -> torch.cuda.CUDAGraph | None:
        try:
            stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
            stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(stream):
                for _ in range(WARM_UP):
                    self._forward(self.batch)
            torch.cuda.current_stream().wait_stream(stream)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                self._output = self._forward(self.batch)
        except RuntimeError as error:
            _log.warning("the forward pass cannot be recorded as a CUDA graph (%s): it runs step by step", error)
            return None
        return graph

    @property
    def recorded(self) -> bool:
        return self._graph is not None

    def __call__(self, batch: Batch) -> Tensor:
        """Predictions ``(B,)`` for up to ``graphs`` graphs of ``nodes`` nodes."""
        count = len(batch.ops)
        self.batch.ops[:count].copy_(batch.ops)
        self.batch.adjacency[:count].copy_(batch.adjacency)
        if self._graph is None or self._output is None:
            return self._forward(self.batch)[:count].clone()
        self._graph.replay()
        return self._output[:count].clone()
