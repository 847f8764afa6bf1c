"""Recording of forward passes as CUDA graphs."""

from __future__ import annotations

import threading
from collections.abc import Callable

import torch
from torch import Tensor

from nas_core.device import uncollected
from nas_core.predictor.nn_former.batch import Batch

GRAPHED = 512  # number of graphs in a recorded pass
WARM_UP = 3
# lock held while recording; a recording synchronises the device, which breaks that of another thread
_RECORDING = threading.Lock()


class RecordedForward:
    """Recorded forward pass over up to ``graphs`` graphs of ``nodes`` nodes, for one thread at a time.

    Args:
        forward: function from a batch to predictions ``(B,)``, without copies to the CPU or data-dependent shapes.

    Raises:
        RuntimeError: torch cannot record the pass.
    """

    # Not in inference mode: up to 2.12 the first recording keeps torch's random state as a tensor of that mode, which
    # recordings outside it cannot change.
    @torch.inference_mode(False)
    @torch.no_grad()
    def __init__(self, forward: Callable[[Batch], Tensor], graphs: int, nodes: int, device: torch.device) -> None:
        self._alone = threading.Lock()
        self.batch = Batch(
            torch.zeros(graphs, nodes, dtype=torch.int64, device=device),
            torch.zeros(graphs, nodes, nodes, dtype=torch.bool, device=device),
            torch.full((graphs,), nodes, device=device),
            full=True,
        )
        self._device = self.batch.ops.device
        self._graph = torch.cuda.CUDAGraph()
        with _RECORDING, uncollected(), torch.cuda.device(self._device):  # a graph that is freed ends a recording
            current = torch.cuda.current_stream(self._device)
            warm_up, recorder = (torch.cuda.Stream(self._device) for _ in range(2))  # type: ignore[no-untyped-call]
            warm_up.wait_stream(current)
            with torch.cuda.stream(warm_up):
                for _ in range(WARM_UP):
                    forward(self.batch)
            current.wait_stream(warm_up)
            recording = torch.cuda.graph(self._graph, stream=recorder, capture_error_mode="thread_local")
            with torch.cuda.stream(current), recording:  # a failed recording leaves torch on its stream
                self._output = forward(self.batch)
        self._finished = torch.cuda.Event()  # type: ignore[no-untyped-call]

    @torch.inference_mode()
    def __call__(self, batch: Batch) -> Tensor:
        count = len(batch.ops)
        with self._alone, torch.cuda.device(self._device):
            stream = torch.cuda.current_stream(self._device)
            stream.wait_event(self._finished)
            self.batch.ops[:count].copy_(batch.ops)
            self.batch.adjacency[:count].copy_(batch.adjacency)
            self._graph.replay()
            predicted = self._output[:count].clone()
            self._finished.record(stream)
        return predicted
