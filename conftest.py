"""The code blocks of README and pages are tests, see ``tests/pages/blocks.py``; tests of any device, see
``tests/devices.py``; programs that start at once, see ``tests/warm``."""

import sys

import pytest

from tests.devices import device, second_device  # noqa: F401  fixtures
from tests.warm import python

try:
    from tests.pages.blocks import collector
except ModuleNotFoundError as error:  # a plain machine, on which only tests of its device are run
    if error.name not in ("sybil", "yaml"):
        raise
else:
    pytest_collect_file = collector("README.md", "docs/*.md", "docs/**/*.md")


@pytest.fixture
def warm_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start the programs of this process with their libraries imported."""
    program, environment = python()
    monkeypatch.setattr(sys, "executable", program)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
