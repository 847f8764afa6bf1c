"""Models that an engine has, and how each of them ended."""

from __future__ import annotations

import queue
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from nas_core.space import Architecture
from nni_ext.compat import nni_module

_FEATURE = "searching model spaces of NNI"


@dataclass
class _Job:
    architecture: Architecture
    model: Any
    reported: Any = None
    """Its final metric as it came, of which the engine keeps the one number that it goes by."""
    awaited: set[int] | None = None
    """Once it has ended without a metric: those that ran then and have not ended yet."""


class Submitted:
    """Takes an engine's events, in whichever thread they come, and gives results in the thread of the search.

    A model's result is its final metric. Of trials that start together, NNI's local training service gives one the
    parameters of the other; metrics are booked by parameters, but the end of a trial by the trial. So a model that
    ended without a metric has failed only when all that ran at the same time have ended too.

    Models are held as long as this is: the engine knows them by weak references, and makes those that are gone anew
    from its trials, where it confuses metrics for the same reason.
    """

    def __init__(self) -> None:
        self._events: queue.SimpleQueue[tuple[str, Any, Any]] = queue.SimpleQueue()
        self._jobs: dict[int, _Job] = {}
        self._held: list[Any] = []

    def __len__(self) -> int:
        """Models without a result."""
        return len(self._jobs)

    def add(self, architecture: Architecture, model: Any) -> None:
        """Before it is submitted, as some engines run it in that very call."""
        self._held.append(model)
        self._jobs[id(model)] = _Job(architecture, model)

    def listen(self, engine: Any, on: bool = True) -> None:
        """To the engine's events, or no more."""
        kinds = nni_module("nni.nas.execution.event", _FEATURE).ModelEventType
        book = engine.register_model_event_callback if on else engine.unregister_model_event_callback
        book(kinds.FinalMetric, self._on_metric)
        book(kinds.TrainingEnd, self._on_end)

    def _on_metric(self, event: Any) -> None:
        self._events.put(("metric", event.model, event.metric))

    def _on_end(self, event: Any) -> None:
        self._events.put(("end", event.model, event.status))

    def results(self, timeout_s: float = 0.0) -> Iterator[tuple[Architecture, Any]]:
        """What models reported that have ended meanwhile, None for those that failed; waits so long for an event."""
        while True:
            try:
                kind, model, value = self._events.get(timeout=timeout_s) if timeout_s else self._events.get_nowait()
            except queue.Empty:
                return
            timeout_s = 0.0
            job = self._jobs.get(id(model))
            if job is None:
                continue
            if kind == "metric":
                job.reported = value
                if job.awaited is not None:
                    yield self._settle(job), value
            elif value == "interrupted":  # asked for again after a resume
                self._settle(job)
            else:
                yield from self._ended(job)

    def _ended(self, job: _Job) -> Iterator[tuple[Architecture, Any]]:
        if job.model.metric is not None:
            whole = isinstance(job.reported, Mapping)
            yield self._settle(job), job.reported if whole else job.model.metric
        else:
            job.awaited = {key for key, other in self._jobs.items() if other.awaited is None and other is not job}
        for other in list(self._jobs.values()):
            if other.awaited is not None:
                other.awaited.discard(id(job.model))
                if not other.awaited:
                    yield self._settle(other), None

    def _settle(self, job: _Job) -> Architecture:
        del self._jobs[id(job.model)]
        return job.architecture
