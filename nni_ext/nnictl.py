"""``python -m nni_ext.nnictl``: nnictl for machines on which NNI's manager starts slowly.

nnictl gives the manager three seconds and then leaves it half started (``Create experiment failed: ... Connection
refused``). Here it gets :data:`SECONDS`; everything else is nnictl's.
"""

from __future__ import annotations

import sys

from nas_core.errors import MissingHostError
from nni_ext.compat import nni_module

__all__ = ["main"]

SECONDS = 60
_FEATURE = "running nnictl"


def main() -> int:
    """nnictl with the arguments of this process; its exit code."""
    try:
        launcher = nni_module("nni.experiment.launcher", _FEATURE)
        nnictl = nni_module("nni.tools.nnictl.nnictl", _FEATURE)
    except MissingHostError as error:
        print(f"nni_ext.nnictl: error: {error}", file=sys.stderr)
        return 2
    check = launcher._check_rest_server
    launcher._check_rest_server = lambda port, retry=SECONDS, url_prefix=None: check(port, SECONDS, url_prefix)
    sys.argv[0] = "nnictl"
    nnictl.parse_args()
    return 0


if __name__ == "__main__":
    sys.exit(main())
