"""``nas-ext search``: from a supernet and a latency model to the architectures worth having."""

from nas_core.cli.search.commands import make_command

__all__ = ["make_command"]
