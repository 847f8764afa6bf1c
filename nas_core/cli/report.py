"""``nas-ext report``: a page with tables and plots from the folder of a search, or a picture of architectures."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nas_core.errors import ConfigError

__all__ = ["command"]

_ARCHITECTURE = "architecture"


def command(
    what: Annotated[
        list[Path],
        typer.Argument(
            help="The --out folder of 'nas-ext search', finished or still running; or: architecture A.json .."
        ),
    ],
    out: Annotated[
        Path | None, typer.Option(help="Picture of architectures (.png); default: A.png beside A.json.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing picture.")] = False,
) -> None:
    """Write report.html, evaluations.csv, evaluations.jsonl and finalists.csv into a search's folder and print the
    finalists. With 'architecture A.json': print its layers and draw them; several files are drawn beside each other."""
    if str(what[0]) == _ARCHITECTURE and len(what) > 1:
        _architectures(what[1:], out, force)
    elif len(what) > 1 or out is not None:
        raise ConfigError(f"got {' '.join(map(str, what))}; expected one folder of a search, or: architecture A.json")
    else:
        _search(what[0])


def _search(run: Path) -> None:
    from nas_core.report import finalists_table, limit_notes, read_run, write_report

    found = read_run(run)
    if found.finalists:
        typer.echo("\n".join([finalists_table(found).text(), *limit_notes(found)]))
    typer.echo(f"wrote {write_report(run)}")


def _architectures(files: list[Path], out: Path | None, force: bool) -> None:
    from nas_core.files import atomic_output
    from nas_core.report import architecture_picture, layers_table
    from nas_core.space import Architecture

    picture = files[0].with_suffix(".png") if out is None else out
    if picture.suffix != ".png" or picture in files:
        raise ConfigError(f"--out is {picture}; expected the name of a picture that ends in .png")
    if picture.exists() and not force:
        raise ConfigError(f"{picture} exists; give another --out, or --force to replace it")
    networks = {file.stem: Architecture.load(file) for file in files}
    if len(networks) < len(files):
        raise ConfigError(f"two files are named {files[0].stem!r}; pictures name networks by their files, rename one")
    content = architecture_picture(networks)
    for name, architecture in networks.items():
        typer.echo(f"{name}\n{layers_table(architecture).text()}\n")
    with atomic_output(picture) as beside:
        Path(beside).write_bytes(content)
    typer.echo(f"wrote {picture}")
