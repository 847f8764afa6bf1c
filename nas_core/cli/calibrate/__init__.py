"""``nas-ext calibrate``, and what ``nas-ext search --calibration`` makes of its files."""

from nas_core.cli.calibrate.commands import command

__all__ = ["command"]
