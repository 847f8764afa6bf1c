"""Scoring with shapes that never change, so that a CUDA device replays each forward pass as one recorded graph."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

import torch
from torch import Tensor

from nas_core.device import uncollected
from nas_core.predictor.nn_former.batch import Batch

__all__ = ["StaticForward", "recordable"]

_log = logging.getLogger(__name__)

WARM_UP = 3
"""Passes before recording, in which libraries choose their kernels and take their memory."""

_RECORDING = threading.Lock()
"""Beginning to record waits for the whole device, which would end what another thread records."""

Forward = Callable[[Batch], Tensor]


class StaticForward:
    """A forward pass over batches that are padded to a fixed number of graphs, each of a fixed number of nodes.

    Launching the some hundred small kernels of a pass takes longer than computing them; a CUDA graph launches them at
    once. Where recording fails, passes run one by one, after one warning. On a CPU nothing is recorded.

    The graph is the weights' device's, whichever is current. A pass stands in the caller's stream of that device, in
    order with what the caller computes there; of passes that are called in different streams or threads the later waits
    for the earlier, since they write into the same memory.

    Args:
        forward: ``Batch -> (B,)`` without operations whose shapes depend on values, and without copies to the host.
        graphs: largest number of graphs in a batch.
        nodes: of every graph.
        device: where the weights are.
    """

    # Not in inference mode: torch keeps the state of random numbers with its first recording, up to 2.12 as a tensor of
    # that mode, which recordings outside it cannot change.
    @torch.inference_mode(False)
    @torch.no_grad()
    def __init__(self, forward: Forward, graphs: int, nodes: int, device: torch.device) -> None:
        self._forward, self._alone = forward, threading.Lock()
        self.batch = Batch(
            torch.zeros(graphs, nodes, dtype=torch.int64, device=device),
            torch.zeros(graphs, nodes, nodes, dtype=torch.bool, device=device),
            torch.full((graphs,), nodes, device=device),
            full=True,
        )
        self._device = self.batch.ops.device
        self._output: Tensor | None = None
        self._graph = self._recorded() if recordable(self._device) else None
        self._finished = None if self._graph is None else torch.cuda.Event()  # type: ignore[no-untyped-call]

    def _recorded(self) -> torch.cuda.CUDAGraph | None:
        """The graph of one pass. Libraries take their memory in passes on a stream of their own; recorded is on another
        one, so that what they take there belongs to the graph. Other threads may go on meanwhile."""
        graph = torch.cuda.CUDAGraph()
        try:
            with _RECORDING, uncollected(), torch.cuda.device(self._device):  # a graph that is freed ends a recording
                current = torch.cuda.current_stream(self._device)
                aside, recorder = (torch.cuda.Stream(self._device) for _ in range(2))  # type: ignore[no-untyped-call]
                aside.wait_stream(current)
                with torch.cuda.stream(aside):
                    for _ in range(WARM_UP):
                        self._forward(self.batch)
                current.wait_stream(aside)
                recording = torch.cuda.graph(graph, stream=recorder, capture_error_mode="thread_local")
                with torch.cuda.stream(current), recording:  # one that fails leaves torch on its stream
                    self._output = self._forward(self.batch)
        except RuntimeError as error:
            _log.warning("the forward pass cannot be recorded as a CUDA graph (%s): it runs step by step", error)
            return None
        return graph

    @property
    def recorded(self) -> bool:
        return self._graph is not None

    @torch.inference_mode()
    def __call__(self, batch: Batch) -> Tensor:
        """Predictions ``(B,)`` for up to ``graphs`` graphs of ``nodes`` nodes."""
        with self._alone:
            return self._predicted(batch)

    def _predicted(self, batch: Batch) -> Tensor:
        if self._graph is None or self._output is None or self._finished is None:
            return self._forward(self._filled(batch))[: len(batch.ops)].clone()
        with torch.cuda.device(self._device):
            stream = torch.cuda.current_stream(self._device)
            stream.wait_event(self._finished)
            self._filled(batch)
            self._graph.replay()
            predicted = self._output[: len(batch.ops)].clone()
            self._finished.record(stream)
        return predicted

    def _filled(self, batch: Batch) -> Batch:
        count = len(batch.ops)
        self.batch.ops[:count].copy_(batch.ops)
        self.batch.adjacency[:count].copy_(batch.adjacency)
        return self.batch


def recordable(device: torch.device) -> bool:
    """Whether passes on that device can be recorded."""
    return device.type == "cuda"
