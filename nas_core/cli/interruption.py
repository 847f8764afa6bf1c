"""What is said when somebody stops a search with Ctrl-C."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import typer

from nas_core.cli import EXIT_INTERRUPTED


@contextlib.contextmanager
def interruption_told(folder: Path) -> Iterator[None]:
    """On Ctrl-C, say what is kept in the run folder and that the same command continues; no traceback."""
    try:
        yield
    except KeyboardInterrupt:
        journal = folder / "journal.jsonl"
        kept = journal.read_bytes().count(b"\n") if journal.exists() else 0
        typer.echo(f"interrupted: {kept} evaluations are kept in {folder}; the same command continues", err=True)
        raise typer.Exit(EXIT_INTERRUPTED) from None
