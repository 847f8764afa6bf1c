"""Benchmarks of speed and quality against references; each module writes ``results/NAME.json``.

``python -m benchmarks.page`` writes ``docs/results.md`` and the figures on other pages from these files.
"""
