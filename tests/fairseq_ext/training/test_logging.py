"""Importing fairseq leaves other libraries' logs alone."""

from __future__ import annotations

import subprocess

from tests.warm import python


def test_loggers_of_others_stay_quiet() -> None:
    program = "import logging, fairseq_ext; print(logging.root.level, logging.root.handlers)"
    starter, environment = python()
    done = subprocess.run([starter, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "30 []"
