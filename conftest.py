"""The code blocks of README and pages are tests, see ``tests/pages/blocks.py``; tests of any device, see
``tests/devices.py``."""

from tests.devices import device, second_device  # noqa: F401  fixtures

try:
    from tests.pages.blocks import collector
except ModuleNotFoundError as error:  # a plain machine, on which only tests of its device are run
    if error.name not in ("sybil", "yaml"):
        raise
else:
    pytest_collect_file = collector("README.md", "docs/*.md", "docs/**/*.md")
