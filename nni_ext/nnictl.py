"""``python -m nni_ext.nnictl``: nnictl for machines on which NNI starts slowly.

nnictl waits three seconds for NNI's manager, this command waits a minute. ``create`` and ``resume`` also wait for the
tuner. If the experiment fails, they print the reason and exit with code 1.
"""

from __future__ import annotations

import contextlib
import sys
import time
from typing import Any

from nas_core.errors import NasExtError
from nni_ext.compat import nni_module

MANAGER_S = 60
TUNER_S = 20
"""Seconds without an error after which an experiment counts as started."""
_FEATURE = "running nnictl"


def main() -> int:
    """Run nnictl with the arguments of this process and return its exit code."""
    sys.argv[0] = "nnictl"
    try:
        patch_timeouts()
        nni_module("nni.tools.nnictl.nnictl", _FEATURE).parse_args()
    except (NasExtError, OSError) as error:
        print(f"nni_ext.nnictl: error: {error}", file=sys.stderr)
        return 1
    return 0


def patch_timeouts() -> None:
    """Patch NNI in this process, so that it waits a minute for its manager, and also waits for the tuner."""
    launcher = nni_module("nni.experiment.launcher", _FEATURE)
    experiment = nni_module("nni.experiment.experiment", _FEATURE).Experiment
    check, start, wait = launcher._check_rest_server, launcher.start_experiment, experiment._wait_completion

    def start_and_wait(action: str, identity: str, config: Any, port: int, *arguments: Any) -> Any:
        process = start(action, identity, config, port, *arguments)
        if action != "view":
            try:
                wait_for_tuner(port, arguments[2])
            except BaseException:
                process.terminate()  # it would hold its port
                raise
        return process

    def wait_and_check(self: Any) -> bool:
        if not wait(self):
            check_status(self.port, self.url_prefix)
        return True

    launcher._check_rest_server = lambda port, retry=MANAGER_S, url_prefix=None: check(port, MANAGER_S, url_prefix)
    launcher.start_experiment, experiment._wait_completion = start_and_wait, wait_and_check


def wait_for_tuner(port: int, url_prefix: str | None = None) -> None:
    """Wait for the first trial, at most :data:`TUNER_S` seconds; raise a NasExtError if the experiment fails.

    Args:
        port, url_prefix: address of NNI's manager on this machine.
    """
    rest = nni_module("nni.experiment.rest", _FEATURE)
    for _ in range(TUNER_S):
        with contextlib.suppress(OSError):  # requests' errors are such; on a busy machine the manager answers late
            check_status(port, url_prefix)
            if rest.get(port, "/trial-jobs", url_prefix):
                return
        time.sleep(1)
    check_status(port, url_prefix)


def check_status(port: int, url_prefix: str | None = None) -> None:
    """Raise a NasExtError if the experiment has failed, an OSError if the manager does not answer."""
    status = nni_module("nni.experiment.rest", _FEATURE).get(port, "/check-status", url_prefix)
    if status.get("status") != "ERROR":
        return
    reason = "; ".join(" ".join(str(error).split()) for error in status.get("errors", ())) or "NNI gives no reason"
    timed_out = "did not connect" in reason
    advice = "the machine is too busy, so start again later" if timed_out else "correct the experiment"
    raise NasExtError(
        f"the experiment failed: {reason} (see dispatcher.log in the experiment's log folder); {advice}, or test the"
        " tuner with 'nas-ext nni check'"
    )


if __name__ == "__main__":
    sys.exit(main())
