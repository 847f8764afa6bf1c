"""A group of commands, one of which is meant where no other is named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from typer.core import TyperGroup

DEFAULT = "RUN .."
"""Name of the command that is meant; nobody types it, help shows it."""


class DefaultGroup(TyperGroup):
    """Arguments that begin with none of the commands are those of the default one.

    The name of a command that stands alone and is also a folder here means the folder.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        named = bool(args) and args[0] in self.commands and not (len(args) == 1 and Path(args[0]).is_dir())
        asked = bool(args) and args[0] in ctx.help_option_names
        return super().parse_args(ctx, args if not args or named or asked else [DEFAULT, *args])

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        name, command, rest = super().resolve_command(ctx, args)
        return "" if name == DEFAULT else name, command, rest
