"""What tuners have to work around in NNI 3.0's dispatcher, the process in which they run."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any, TypeVar

from nni_ext.compat import nni_module

_FEATURE = "searching with NNI's experiments"
Method = TypeVar("Method", bound=Callable[..., Any])


def errors_told(method: Method) -> Method:
    """A tuner's method whose errors end the experiment.

    NNI's dispatcher ends at an error of its tuner but tells nobody: the experiment would stay ``RUNNING`` for ever, and
    the reason in ``dispatcher.log`` alone. Told by us, the manager sets it to ``ERROR``.
    """

    @functools.wraps(method)
    def told(*args: Any, **kwargs: Any) -> Any:
        try:
            return method(*args, **kwargs)
        except Exception as error:
            dispatcher = _calling_dispatcher()
            if dispatcher is not None and not isinstance(error, nni_module("nni", _FEATURE).NoMoreTrialError):
                dispatcher.report_error(str(error))
            raise

    return told  # type: ignore[return-value]


def _calling_dispatcher() -> Any:
    """The one among the callers; None outside an experiment. Tuners are given no other way to it."""
    dispatcher = nni_module("nni.runtime.msg_dispatcher_base", _FEATURE).MsgDispatcherBase
    frame = sys._getframe(1)
    while frame is not None and not isinstance(frame.f_locals.get("self"), dispatcher):
        frame = frame.f_back  # type: ignore[assignment]
    return None if frame is None else frame.f_locals["self"]
