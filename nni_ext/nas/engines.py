"""Models submitted to NNI's execution engines, and workarounds for NNI 3.0."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from nas_core.space import Architecture
from nni_ext.compat import nni_module

_FEATURE = "searching model spaces of NNI"
_log = logging.getLogger("nni.nas_ext")


def keep_listening(engine: Any) -> bool:
    """Restart the thread in which a training-service engine listens to NNI; return True if the thread had ended."""
    # In a resumed experiment, commands about old trials end the thread.
    middleware = nni_module("nni.nas.execution", _FEATURE).Middleware
    while isinstance(engine, middleware):
        engine = engine.engine
    thread = getattr(engine, "_channel_listen_thread", None)
    if thread is None or thread.is_alive() or engine._channel_listen_stop_event.is_set():
        return False
    _log.warning("restarted the engine's connection to NNI's manager; it can break when an experiment is resumed")
    engine._channel_listen_thread = threading.Thread(
        target=engine._channel.listen, args=(engine._channel_listen_stop_event,), daemon=True
    )
    engine._channel_listen_thread.start()
    return True


@dataclass
class _Job:
    architecture: Architecture
    model: Any
    reported: Any = None
    waiting_for: set[int] | None = None
    """For a model that ended without a metric: models that were running then, and still are."""


class SubmittedModels:
    """Models submitted to an engine; collects the engine's events for the thread of the search."""

    # Trials of NNI's local training service that start together may swap their parameters: a metric belongs to
    # parameters, an end to a trial. So a model without a metric fails only when all concurrent models have ended.
    def __init__(self) -> None:
        self._events: queue.SimpleQueue[tuple[str, Any, Any]] = queue.SimpleQueue()
        self._jobs: dict[int, _Job] = {}
        self._models: list[Any] = []  # engines have weak references to models alone

    def __len__(self) -> int:
        return len(self._jobs)

    def add(self, architecture: Architecture, model: Any) -> None:
        """Add a model; to be called before its submission, since some engines run models while they are submitted."""
        self._models.append(model)
        self._jobs[id(model)] = _Job(architecture, model)

    def listen(self, engine: Any, start: bool = True) -> None:
        """Start or stop listening to an engine's events."""
        kinds = nni_module("nni.nas.execution.event", _FEATURE).ModelEventType
        change = engine.register_model_event_callback if start else engine.unregister_model_event_callback
        change(kinds.FinalMetric, self._on_metric)
        change(kinds.TrainingEnd, self._on_end)

    def _on_metric(self, event: Any) -> None:
        self._events.put(("metric", event.model, event.metric))

    def _on_end(self, event: Any) -> None:
        self._events.put(("end", event.model, event.status))

    def results(self, timeout_s: float = 0.0) -> Iterator[tuple[Architecture, Any]]:
        """Yield architecture and reported result (None if failed) of ended models.

        Args:
            timeout_s: longest wait for a first event, in seconds.
        """
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
                if job.waiting_for is not None:
                    yield self._settle(job), value
            elif value == "interrupted":  # it is submitted again after a resume
                self._settle(job)
            else:
                yield from self._handle_end(job)

    def _handle_end(self, job: _Job) -> Iterator[tuple[Architecture, Any]]:
        if job.model.metric is not None:
            has_metrics = isinstance(job.reported, Mapping)
            yield self._settle(job), job.reported if has_metrics else job.model.metric
        else:
            job.waiting_for = {
                key for key, other in self._jobs.items() if other.waiting_for is None and other is not job
            }
        for other in list(self._jobs.values()):
            if other.waiting_for is not None:
                other.waiting_for.discard(id(job.model))
                if not other.waiting_for:
                    yield self._settle(other), None

    def _settle(self, job: _Job) -> Architecture:
        del self._jobs[id(job.model)]
        return job.architecture
