"""``nas-ext report``: write HTML pages about searches, and print the layers of architectures."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from nas_core.errors import ConfigError

DEFAULT = "RUN .."
"""Name of the default command in the help."""


class DefaultGroup(TyperGroup):
    """Command group with a default command, used if the first argument is not a command.

    A single argument that names both a command and a folder is taken as the folder.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        named = bool(args) and args[0] in self.commands and not (len(args) == 1 and Path(args[0]).is_dir())
        helped = bool(args) and args[0] in ctx.help_option_names
        return super().parse_args(ctx, args if not args or named or helped else [DEFAULT, *args])

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        name, command, rest = super().resolve_command(ctx, args)
        return "" if name == DEFAULT else name, command, rest


app = typer.Typer(cls=DefaultGroup, no_args_is_help=True, subcommand_metavar="RUN .. | COMMAND ..")

_COMPARISON = "comparison.html"


@app.command(DEFAULT, short_help="Write a page about a search, or compare several searches.")
def searches(
    runs: Annotated[
        list[Path],
        typer.Argument(
            help="The --out folder of 'nas-ext search', finished or running; several folders are compared.",
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(help="For several searches: page to write (.html); default: comparison.html in the first folder."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file that --out names.")] = False,
) -> None:
    """Write report.html, evaluations.csv, evaluations.jsonl and finalists.csv into a search's folder, and
    print the finalists. For several searches, write one page that compares them and print a table.
    """
    if len(runs) > 1:
        _comparison(runs, out, force)
    elif out is not None:
        raise ConfigError(f"--out {out} is only for several searches; the report of one is written to {runs[0]}")
    else:
        _search(runs[0])


def _search(run: Path) -> None:
    from nas_core.report import write_report
    from nas_core.report.run import damaged, finalists_text, read_run

    search = read_run(run)
    if search.finalists:
        with damaged(run):
            typer.echo(finalists_text(search))
    typer.echo(f"wrote {write_report(run)}")


def _comparison(folders: list[Path], out: Path | None, force: bool) -> None:
    from nas_core.predictor.files import new_file
    from nas_core.report import write_comparison
    from nas_core.report.comparison import comparison_table
    from nas_core.report.run import damaged, read_run

    page = folders[0] / _COMPARISON if out is None else new_file(out, force, [], [".html"])
    with damaged(folders[0].parent):
        typer.echo(comparison_table([read_run(folder) for folder in folders]).text())
        typer.echo(f"wrote {write_comparison(folders, page)}")


@app.command("architecture")
def architecture(files: Annotated[list[Path], typer.Argument(help="Architecture files (A.json ..).")]) -> None:
    """Print the layers of architectures."""
    from nas_core.report.architecture import layers_table
    from nas_core.search.finalists import load_architecture

    for file in files:
        typer.echo(f"{file.stem}\n{layers_table(load_architecture(file)).text()}\n")
