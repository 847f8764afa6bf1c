"""``nas-ext latency``: measured latencies of architectures and networks, and models of them."""

from nas_core.cli.latency.commands import app

__all__ = ["app"]
