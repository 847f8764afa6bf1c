"""``nas-ext report``: a page with tables and plots from the folder of a search."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["command"]


def command(
    run: Annotated[Path, typer.Argument(help="The --out folder of 'nas-ext search', finished or still running.")],
) -> None:
    """Write report.html and finalists.csv into a search's folder and print the finalists."""
    from nas_core.report import finalists_table, read_run, write_report

    found = read_run(run)
    if found.finalists:
        typer.echo(finalists_table(found).text())
    typer.echo(f"wrote {write_report(run)}")
