"""``nas-ext study``: whether trained supernets can be trusted, a sub-command for each registered study."""

from nas_core.cli.study.commands import app

__all__ = ["app"]
