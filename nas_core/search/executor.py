"""Evaluations of a search on other machines: the supernet is opened in jobs, the search itself stays here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from nas_core.files import real_path
from nas_core.jobs import Failure, JobPool, JobsConfig
from nas_core.space import Architecture


class SubmititExecutor:
    """Evaluates batches of architectures in jobs of submitit: ``evaluate_many`` of :func:`nas_core.search.search`.

    Args:
        checkpoint: a trained supernet, which all machines see under this path.
        options: of :func:`nas_core.supernet.host.open_supernet`.
        jobs: how many jobs, where.
        folder: for the jobs' files; all machines see it.
        on_paper: metrics that are computed here; they give way to those of the supernet.

    Raises:
        MissingHostError: submitit is not installed.
    """

    def __init__(
        self,
        checkpoint: str | Path,
        options: Mapping[str, Any],
        jobs: JobsConfig,
        folder: str | Path,
        on_paper: Callable[[Architecture], Mapping[str, Any]] = lambda architecture: {},
    ) -> None:
        self._pool = JobPool(jobs, folder)
        self._arguments = {
            "checkpoint": str(real_path(checkpoint)),
            "options": dict(options),
            "threads": jobs.cpus,
        }
        self._on_paper = on_paper
        self.together = jobs.jobs * jobs.per_job
        """Architectures that keep all jobs busy."""

    def __call__(self, architectures: Sequence[Architecture]) -> Iterator[dict[str, Any] | Failure]:
        """Metrics of each architecture, or why it failed, in order; see :meth:`nas_core.jobs.JobPool.map`."""
        genes = [architecture.to_dict() for architecture in architectures]
        outcomes = self._pool.map(open_checkpoint, self._arguments, genes)
        for architecture, outcome in zip(architectures, outcomes, strict=True):
            yield outcome if isinstance(outcome, Failure) else {**self._on_paper(architecture), **outcome}


def open_checkpoint(
    checkpoint: str, options: Mapping[str, Any], threads: int
) -> Callable[[dict[str, Any]], dict[str, float]]:
    """In a job: the supernet's evaluation of an architecture given by its genes."""
    import torch

    from nas_core.supernet.host import open_supernet

    torch.set_num_threads(threads)
    supernet = open_supernet(checkpoint, **options)
    return lambda genes: supernet.evaluate(Architecture(genes))
