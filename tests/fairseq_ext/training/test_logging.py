"""Importing fairseq leaves other libraries' logs alone."""

from __future__ import annotations

import subprocess
import sys


def test_loggers_of_others_stay_quiet() -> None:
    program = "import logging, fairseq_ext; print(logging.root.level, logging.root.handlers)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "30 []"
