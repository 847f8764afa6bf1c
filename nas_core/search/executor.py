"""Evaluation of architectures in submitit jobs or on several local devices."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from nas_core.files.reading import real_path
from nas_core.jobs import Failure, JobPool, JobsConfig
from nas_core.space import Architecture
from nas_core.workers import WorkerPool

PER_DEVICE = 25
"""Number of architectures per device in one batch."""

OnPaper = Callable[[Architecture], Mapping[str, Any]]


class SubmititExecutor:
    """Evaluation in submitit jobs, for ``evaluate_many`` of :func:`nas_core.search.search`.

    Args:
        checkpoint: trained supernet, at the same path on all machines.
        options: options of :func:`nas_core.supernet.host.open_supernet`.
        folder: shared folder for the jobs' files.
        on_paper: function that computes further metrics, such as parameters.
    """

    def __init__(
        self,
        checkpoint: str | Path,
        options: Mapping[str, Any],
        jobs: JobsConfig,
        folder: str | Path,
        on_paper: OnPaper = lambda architecture: {},
    ) -> None:
        self._pool = JobPool(jobs, folder)
        self._arguments = {"checkpoint": str(real_path(checkpoint)), "options": dict(options), "threads": jobs.cpus}
        self._on_paper = on_paper
        self.batch_size = jobs.jobs * jobs.per_job
        """Number of architectures per batch."""

    def __call__(self, architectures: Sequence[Architecture]) -> Iterator[dict[str, Any] | Failure]:
        genes = [architecture.to_dict() for architecture in architectures]
        return _with_costs(architectures, self._pool.map(open_checkpoint, self._arguments, genes), self._on_paper)


class DeviceExecutor:
    """Evaluation on several devices, for ``evaluate_many`` of :func:`nas_core.search.search`.

    One process per device opens the supernet once. An architecture that crashes two processes counts as failed. Leaving
    the context manager ends the processes.

    Example:
        >>> with DeviceExecutor("best.pt", "cuda:0,cuda:1") as evaluations:
        ...     search(strategy, None, "run", evaluate_many=evaluations, batch_size=evaluations.batch_size)

    Args:
        devices: names separated by commas; ``cpu,cpu`` starts two processes.
        options, on_paper: as for :class:`SubmititExecutor`.
    """

    def __init__(
        self,
        checkpoint: str | Path,
        devices: str,
        options: Mapping[str, Any] | None = None,
        on_paper: OnPaper = lambda architecture: {},
    ) -> None:
        from nas_core.device import usable_devices  # imports torch

        names = usable_devices(devices)
        path = str(real_path(checkpoint))
        options_of = [{**(options or {}), "device": name} for name in names]
        arguments = [{"checkpoint": path, "options": options, "threads": 1} for options in options_of]
        self._pool = WorkerPool(open_checkpoint, arguments, names)
        self._on_paper = on_paper
        self.batch_size = PER_DEVICE * len(names)
        """Number of architectures per batch."""

    def __enter__(self) -> DeviceExecutor:
        return self

    def __exit__(self, *error: object) -> None:
        self._pool.close()

    def __call__(self, architectures: Sequence[Architecture]) -> Iterator[dict[str, Any] | Failure]:
        genes = [architecture.to_dict() for architecture in architectures]
        return _with_costs(architectures, self._pool.map(genes), self._on_paper)


def _with_costs(
    architectures: Sequence[Architecture], outcomes: Iterator[Any], on_paper: OnPaper
) -> Iterator[dict[str, Any] | Failure]:
    for architecture, outcome in zip(architectures, outcomes, strict=True):
        yield outcome if isinstance(outcome, Failure) else {**on_paper(architecture), **outcome}


def open_checkpoint(
    checkpoint: str, options: Mapping[str, Any], threads: int
) -> Callable[[dict[str, Any]], dict[str, float]]:
    """Open a supernet for ``threads`` CPU threads; return a function that evaluates a dictionary of genes."""
    import torch

    from nas_core.device import device_index, usable_device
    from nas_core.supernet.host import open_supernet

    device = usable_device(str(options["device"]))
    if device.type == "cuda":
        torch.cuda.set_device(device_index(device))
    torch.set_num_threads(threads)
    supernet = open_supernet(checkpoint, **options)
    return lambda genes: supernet.evaluate(Architecture(genes))
