"""What a workload takes of memory, measured: the most that is held during a pass, and the cache that decoding leaves.

On the CPU a dispatch mode follows every tensor's storage from the operation that makes it until it is freed; on CUDA
the allocator counts. Megabytes are 10^6 bytes.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: PLC2701
from torch.utils._pytree import tree_leaves  # noqa: PLC2701

from nas_core.models.workload import Workload


@runtime_checkable
class Decodes(Protocol):
    """A workload that decodes step by step."""

    def cache_tensors(self) -> Sequence[Tensor]:
        """What the cache holds after the last step; runs what has to run before."""
        ...


@dataclass(frozen=True)
class MeasuredMemory:
    """What one pass of a workload took."""

    memory_mb: float
    """Weights, and the most that was held beside them at one time."""
    weights_mb: float
    """Parameters and buffers."""
    cache_mb: float | None
    """The cache after the last step; None where nothing is decoded."""


class _Live(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Bytes of the storages that operations have made and nobody has freed; the most of them at one time."""

    def __init__(self, known: Iterable[Tensor]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.now = self.most = 0
        self._known = {tensor.untyped_storage()._cdata for tensor in known}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        for tensor in tree_leaves(result):
            if isinstance(tensor, Tensor):
                self._follow(tensor)
        return result

    def _follow(self, tensor: Tensor) -> None:
        storage = tensor.untyped_storage()
        key, size = storage._cdata, storage.nbytes()
        if key in self._known:
            return
        self._known.add(key)
        self.now += size
        self.most = max(self.most, self.now)
        weakref.finalize(storage, self._freed, key, size)

    def _freed(self, key: int, size: int) -> None:
        self._known.discard(key)
        self.now -= size


def measure_memory(workload: Workload, device: str = "cpu") -> MeasuredMemory:
    """Run one pass and tell what it took.

    Args:
        device: where the workload lies.
    """
    weights = [tensor for module in workload.modules for tensor in _held(module)]
    weights_bytes = _bytes(weights)
    with torch.inference_mode():
        if torch.device(device).type == "cuda":
            most = _most_on_cuda(workload, device)
        else:
            with _Live(weights) as live:
                for run in workload.parts.values():
                    run()
            most = live.most
        cache = _bytes(workload.cache_tensors()) if isinstance(workload, Decodes) else None
    return MeasuredMemory((weights_bytes + most) / 1e6, weights_bytes / 1e6, None if cache is None else cache / 1e6)


def _most_on_cuda(workload: Workload, device: str) -> int:
    for run in workload.parts.values():  # libraries take their workspaces in the first pass
        run()
    torch.cuda.synchronize(device)
    before = torch.cuda.memory_allocated(device)
    torch.cuda.reset_peak_memory_stats(device)
    for run in workload.parts.values():
        run()
    torch.cuda.synchronize(device)
    return int(torch.cuda.max_memory_allocated(device) - before)


def _held(module: nn.Module) -> Iterable[Tensor]:
    yield from module.parameters()
    yield from module.buffers()


def _bytes(tensors: Iterable[Tensor]) -> int:
    """Bytes of the tensors' storages, each counted once."""
    sizes = {tensor.untyped_storage()._cdata: tensor.untyped_storage().nbytes() for tensor in tensors}
    return sum(sizes.values())
