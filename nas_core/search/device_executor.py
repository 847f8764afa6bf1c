"""Evaluations of a search on several devices of this machine: a process for each, in which the supernet stays open."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from nas_core.files import real_path
from nas_core.jobs import Failure
from nas_core.search.executor import open_checkpoint
from nas_core.space import Architecture
from nas_core.workers import WorkerPool

PER_DEVICE = 25
"""Architectures asked for at a time and device: only at the end of them does a device wait for another."""


class DeviceExecutor:
    """Evaluates architectures on several devices: ``evaluate_many`` of :func:`nas_core.search.search`.

    One worker for each device opens the supernet once, with the first architectures, and computes with one thread. A
    worker that dies is replaced once; if the second dies over the same architecture, that one has failed. Used as a
    context manager, no worker is left behind.

    Example:
        >>> with DeviceExecutor("best.pt", "cuda:0,cuda:1") as evaluations:
        ...     search(strategy, None, "run", evaluate_many=evaluations, together=evaluations.together)

    Args:
        checkpoint: a trained supernet.
        devices: as :func:`nas_core.device.usable_devices` takes them; ``cpu,cpu`` is two processes.
        options: further ones of :func:`nas_core.supernet.host.open_supernet`.
        on_paper: metrics that are computed here; they give way to those of the supernet.

    Raises:
        ConfigError: a device is not there, or given twice.
    """

    def __init__(
        self,
        checkpoint: str | Path,
        devices: str,
        options: Mapping[str, Any] | None = None,
        on_paper: Callable[[Architecture], Mapping[str, Any]] = lambda architecture: {},
    ) -> None:
        from nas_core.device import usable_devices  # with torch, which takes long to import

        names = usable_devices(devices)
        path = str(real_path(checkpoint))
        arguments = [{"checkpoint": path, "options": {**(options or {}), "device": name}} for name in names]
        self._pool = WorkerPool(open_on_device, arguments, names)
        self._on_paper = on_paper
        self.at_once = len(names)
        """Architectures that are evaluated at the same time."""
        self.together = PER_DEVICE * len(names)
        """Architectures that keep all devices busy for a while."""

    def __enter__(self) -> DeviceExecutor:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the workers."""
        self._pool.close()

    def __call__(self, architectures: Sequence[Architecture]) -> Iterator[dict[str, Any] | Failure]:
        """Metrics of each architecture, or why it failed, in order; see :meth:`nas_core.workers.WorkerPool.map`."""
        outcomes = self._pool.map([architecture.to_dict() for architecture in architectures])
        for architecture, outcome in zip(architectures, outcomes, strict=True):
            yield outcome if isinstance(outcome, Failure) else {**self._on_paper(architecture), **outcome}


def open_on_device(checkpoint: str, options: Mapping[str, Any]) -> Callable[[dict[str, Any]], dict[str, float]]:
    """In a worker: the supernet's evaluation of an architecture given by its genes, with one thread.

    Its device is made the current one, so that nothing of a host takes memory of another.
    """
    import torch

    from nas_core.device import device_index, usable_device

    device = usable_device(str(options["device"]))
    if device.type == "cuda":
        torch.cuda.set_device(device_index(device))
    return open_checkpoint(checkpoint, options, threads=1)
