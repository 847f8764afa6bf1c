"""``python -m nni_ext.nnictl``: nnictl for machines on which NNI starts slowly.

nnictl waits three seconds for NNI's manager (``Create experiment failed: ... Connection refused``); this command waits
a minute. ``create`` and ``resume`` also wait until the tuner has connected. If the experiment fails, they print the
reason and end with exit code 1.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from typing import Any

from nas_core.errors import MissingHostError, NasExtError
from nni_ext.compat import nni_module

MANAGER_S = 60
TUNER_S = 20
"""Seconds after which an experiment without error and trials counts as started"""
MOST_UNANSWERED = 3
"""Consecutive unanswered requests after which a manager counts as dead"""
_FEATURE = "running nnictl"


def main() -> int:
    """Run nnictl with the arguments of this process and return its exit code."""
    try:
        launcher = nni_module("nni.experiment.launcher", _FEATURE)
        experiment = nni_module("nni.experiment.experiment", _FEATURE).Experiment
        nnictl = nni_module("nni.tools.nnictl.nnictl", _FEATURE)
    except MissingHostError as error:
        print(f"nni_ext.nnictl: error: {error}", file=sys.stderr)
        return 2
    check, start, wait = launcher._check_rest_server, launcher.start_experiment, experiment._wait_completion

    def started(action: str, identity: str, config: Any, port: int, *arguments: Any) -> Any:
        process = start(action, identity, config, port, *arguments)
        if action != "view":
            try:
                wait_for_tuner(port, arguments[2])
            except BaseException:
                process.terminate()  # it would hold its port
                raise
        return process

    def completed(self: Any) -> bool:
        if not wait(self):
            check_status(self.port, self.url_prefix)
        return True

    launcher._check_rest_server = lambda port, retry=MANAGER_S, url_prefix=None: check(port, MANAGER_S, url_prefix)
    launcher.start_experiment, experiment._wait_completion = started, completed
    sys.argv[0] = "nnictl"
    try:
        nnictl.parse_args()
    except NasExtError as error:
        print(f"nni_ext.nnictl: error: {error}", file=sys.stderr)
        return 1
    finally:
        launcher._check_rest_server, launcher.start_experiment = check, start
        experiment._wait_completion = wait
    return 0


def wait_for_tuner(port: int, url_prefix: str | None = None) -> None:
    """Wait until an experiment has a trial or :data:`TUNER_S` seconds have passed; raise a NasExtError if it fails."""
    rest = nni_module("nni.experiment.rest", _FEATURE)
    unanswered = 0
    for _ in range(TUNER_S):
        try:
            status = rest.get(port, "/check-status", url_prefix)
            trials = rest.get(port, "/trial-jobs", url_prefix)
        except OSError as error:  # requests' errors are such; on a busy machine the manager answers late
            unanswered += 1
            if unanswered == MOST_UNANSWERED:
                raise NasExtError(f"NNI's manager does not answer at port {port} ({error}); start it again") from error
        else:
            unanswered = 0
            _check(status)
            if trials:
                return
        time.sleep(1)


def check_status(port: int, url_prefix: str | None = None) -> None:
    """Raise a NasExtError if the experiment has failed or the manager does not answer."""
    try:
        status: Mapping[str, Any] = nni_module("nni.experiment.rest", _FEATURE).get(port, "/check-status", url_prefix)
    except OSError as error:  # requests' errors are such
        status = {"status": "ERROR", "errors": [f"NNI's manager does not answer at port {port} ({error})"]}
    _check(status)


def _check(status: Mapping[str, Any]) -> None:
    if status.get("status") != "ERROR":
        return
    reason = "; ".join(" ".join(str(error).split()) for error in status.get("errors", ())) or "it does not say why"
    late = "did not connect" in reason
    advice = "the machine is too busy: start it again when it is less so" if late else "correct what it says"
    raise NasExtError(
        f"the experiment failed: {reason} (dispatcher.log in the experiment's log folder says more); {advice},"
        " 'nas-ext nni check' tries its tuner here"
    )


if __name__ == "__main__":
    sys.exit(main())
