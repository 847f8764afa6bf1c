"""Memory of a network in MB (10^6 bytes): the peak during a forward pass, and the cache after decoding."""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: PLC2701
from torch.utils._pytree import tree_leaves  # noqa: PLC2701

from nas_core.models.workload import Workload


@dataclass(frozen=True)
class MeasuredMemory:
    """Memory of one forward pass in MB (10^6 bytes)."""

    memory_mb: float
    """Weights plus the peak of all other tensors."""
    weights_mb: float
    cache_mb: float | None
    """Cache after the last token; None if the workload does not decode."""


class _Live(TorchDispatchMode):  # type: ignore[no-untyped-call]
    def __init__(self, ignored: Iterable[Tensor]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.now = self.peak = 0
        self._seen = {tensor.untyped_storage()._cdata for tensor in ignored}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        for tensor in tree_leaves(result):
            if isinstance(tensor, Tensor):
                self._follow(tensor)
        return result

    def _follow(self, tensor: Tensor) -> None:
        storage = tensor.untyped_storage()
        key, size = storage._cdata, storage.nbytes()
        if key in self._seen:
            return
        self._seen.add(key)
        self.now += size
        self.peak = max(self.peak, self.now)
        weakref.finalize(storage, self._freed, key, size)

    def _freed(self, key: int, size: int) -> None:
        self._seen.discard(key)
        self.now -= size


def measure_memory(workload: Workload, device: str = "cpu") -> MeasuredMemory:
    """Run one forward pass of a workload and return its memory."""
    weights = [x for module in workload.modules for x in (*module.parameters(), *module.buffers())]
    weights_bytes = _bytes(weights)
    with torch.inference_mode():
        if torch.device(device).type == "cuda":
            peak = _peak_on_cuda(workload, device)
        else:
            with _Live(weights) as live:
                for run in workload.components.values():
                    run()
            peak = live.peak
        cache = _cache_tensors(workload)
    cache_mb = None if cache is None else _bytes(cache) / 1e6
    return MeasuredMemory((weights_bytes + peak) / 1e6, weights_bytes / 1e6, cache_mb)


def _cache_tensors(workload: Any) -> list[Tensor] | None:
    """Run the workload and return its cache after the last token; None if it does not decode."""
    net = getattr(workload, "_net", None)  # private
    if not hasattr(net, "step"):
        return None
    with patch.object(net, "step", wraps=net.step) as step:
        for run in workload.components.values():
            run()
    cache = step.call_args.args[2]
    states = [*(past for past in cache.past if past is not None), *getattr(cache, "cross", ())]
    return [tensor for state in states for tensor in state.tensors()]


def _peak_on_cuda(workload: Workload, device: str) -> int:
    for run in workload.components.values():  # libraries take their workspaces in the first pass
        run()
    torch.cuda.synchronize(device)
    before = torch.cuda.memory_allocated(device)
    torch.cuda.reset_peak_memory_stats(device)
    for run in workload.components.values():
        run()
    torch.cuda.synchronize(device)
    return int(torch.cuda.max_memory_allocated(device) - before)


def _bytes(tensors: Iterable[Tensor]) -> int:
    sizes = {tensor.untyped_storage()._cdata: tensor.untyped_storage().nbytes() for tensor in tensors}
    return sum(sizes.values())
