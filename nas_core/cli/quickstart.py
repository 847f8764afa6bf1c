"""``nas-ext quickstart``: write a folder with a small runnable example."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nas_core.errors import NasExtError
from nas_core.quickstart import QUICKSTARTS, Quickstart


def command(
    name: Annotated[str, typer.Argument(metavar="[NAME]", help="Name of the example; default: list all.")] = "",
    folder: Annotated[
        Path | None, typer.Argument(metavar="[FOLDER]", help="New or empty folder; default: quickstart-NAME.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Write into a folder that is not empty.")] = False,
) -> None:
    """Write a folder with a small example: data, a README and a script that takes minutes."""
    if not name:
        typer.echo("nas-ext quickstart NAME [FOLDER] writes one of these, each with a script that runs it:")
        for quickstart_name in QUICKSTARTS.names():
            first, *lines = _first_lines(quickstart_name)
            typer.echo("\n".join([f"\n  {quickstart_name:<12} {first}", *(f"  {'':<12} {line}" for line in lines)]))
        return
    quickstart = QUICKSTARTS.get(name)
    target = folder or Path(f"quickstart-{name}")
    written = quickstart.write(target, force)
    typer.echo(f"{target}: {', '.join(_describe_files(written, target))}")
    typer.echo(f"next: cd {target} && {quickstart.command}    # {_minutes(quickstart)}; see README.md")


def _first_lines(name: str) -> list[str]:
    lines = []
    try:
        quickstart = QUICKSTARTS.get(name)
        needs = f", needs {quickstart.extra}" if quickstart.extra else ""
        lines = [quickstart.purpose, f"{_minutes(quickstart)}{needs}"]
        quickstart.check()
    except NasExtError as error:
        lines.append(f"not usable here: {error}")
    return lines


def _minutes(quickstart: Quickstart) -> str:
    return f"about {quickstart.minutes:g} minute{'s' if quickstart.minutes > 1 else ''}"


def _describe_files(written: list[Path], target: Path) -> list[str]:
    tops = [path.relative_to(target).parts for path in written]
    folders = dict.fromkeys(path_parts[0] for path_parts in tops if len(path_parts) > 1)
    counts = [f"{name}/ ({sum(path_parts[0] == name for path_parts in tops)} files)" for name in folders]
    return [path_parts[0] for path_parts in tops if len(path_parts) == 1] + counts
