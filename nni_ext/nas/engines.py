"""What strategies have to work around in NNI 3.0; all of it looks at what NNI keeps to itself."""

from __future__ import annotations

import logging
import sys
import threading
from typing import Any

from nni_ext.compat import nni_module

_FEATURE = "searching model spaces of NNI"
_log = logging.getLogger("nni.nas_ext")


def stopping() -> bool:
    """Whether the caller was called by NNI ending an experiment.

    NNI saves a strategy's state when an experiment starts and when it ends, the latter even if the state of an earlier
    run could not be read, and would write that of a strategy that never ran over it. Only the callers differ.
    """
    stop = nni_module("nni.nas.experiment.experiment", _FEATURE).NasExperiment.stop.__code__
    frame = sys._getframe(1)
    while frame is not None and frame.f_code is not stop:
        frame = frame.f_back  # type: ignore[assignment]
    return frame is not None


def finished_trials(engine: Any) -> list[tuple[dict[str, Any], Any]]:
    """Sample and final metric of each trial that the manager of a training-service engine knows; none of others.

    Metrics are looked up by their parameters, not by their trials as NNI's ``list_models`` does it: of trials that
    start together, one may be given the parameters of the other.
    """
    manager = getattr(_innermost(engine), "nodejs_binding", None)
    if manager is None:
        return []
    nni = nni_module("nni", _FEATURE)
    trials = manager.list_trial_jobs()
    given = {str(one.parameter_id): one.parameters for trial in trials for one in trial.hyperParameters}
    metrics = {str(one.parameterId): one.data for trial in trials for one in trial.finalMetricData}
    models = {key: nni.load(nni.dump(given[key])) for key in metrics if key in given}
    return [(model.sample, metrics[key]) for key, model in models.items() if getattr(model, "sample", None)]


def keep_listening(engine: Any) -> bool:
    """Whether a training-service engine had stopped listening to its manager, and does again.

    The manager of a resumed experiment sends commands about old trials (``ImportData``, ``AddCustomizedTrialJob``),
    at each of which the thread that listens ends with an error, and no worker is ever reported. The commands after it
    wait to be read.
    """
    engine = _innermost(engine)
    thread = getattr(engine, "_channel_listen_thread", None)
    if thread is None or thread.is_alive() or engine._channel_listen_stop_event.is_set():
        return False
    _log.warning("the engine no longer listened to NNI's manager, as happens on a resume; it listens again")
    engine._channel_listen_thread = threading.Thread(
        target=engine._channel.listen, args=(engine._channel_listen_stop_event,), daemon=True
    )
    engine._channel_listen_thread.start()
    return True


def _innermost(engine: Any) -> Any:
    middleware = nni_module("nni.nas.execution", _FEATURE).Middleware
    while isinstance(engine, middleware):
        engine = engine.engine
    return engine
