"""Speed and quality against references, by subject; each module writes ``results/<its name>.json``.

``python -m benchmarks.page`` makes ``docs/results.md`` of them, and the figures on other pages.
"""
