"""The code blocks of README and pages are tests; see ``tests/pages/blocks.py``."""

from tests.pages.blocks import collector

pytest_collect_file = collector("README.md", "docs/*.md", "docs/**/*.md")
