"""``nas-ext report``: pages about searches, measured latencies and predictors, or a picture of architectures."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from nas_core.cli import EXIT_INTERRUPTED
from nas_core.cli.default_command import DEFAULT, DefaultGroup
from nas_core.cli.report_data import latency, new_output, predictor
from nas_core.errors import ConfigError

app = typer.Typer(cls=DefaultGroup, no_args_is_help=True, subcommand_metavar="RUN .. | COMMAND ..")

_COMPARISON = "comparison.html"
_EVERY_S = 10.0


@app.command(DEFAULT, short_help="A page of a search (its --out folder); of several side by side.")
def searches(
    runs: Annotated[
        list[Path],
        typer.Argument(
            help="The --out folder of 'nas-ext search', finished or still running; several are compared.",
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(help="Of several searches: the page (.html), default comparison.html in the first one's folder."),
    ] = None,
    train_log: Annotated[
        Path | None,
        typer.Option(
            help="Of one search: log of the supernet's training (fairseq's with --log-format simple or json,"
            " metrics.json of timm_ext.train, timm's summary.csv); default: what lies beside its checkpoint."
        ),
    ] = None,
    watch: Annotated[
        bool,
        typer.Option("--watch", help="Of one running search: write the page anew until the search ends, or Ctrl-C."),
    ] = False,
    every: Annotated[
        float | None,
        typer.Option(help="Seconds between two pages of --watch, and before a running search's page reloads itself."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file that --out names.")] = False,
) -> None:
    """Write report.html, a picture of each front (front-*.png), evaluations.csv, evaluations.jsonl and finalists.csv
    into a search's folder and print the finalists. Of several searches, write one page with their fronts in the same
    axes and print what each found."""
    if train_log is not None and len(runs) > 1:
        raise ConfigError(f"--train-log {train_log} is for the report of one search; give one folder with it")
    if (watch or every is not None) and len(runs) > 1:
        raise ConfigError("--watch and --every are for the report of one search; give one folder with them")
    if len(runs) > 1:
        _comparison(runs, out, force)
    elif out is not None:
        raise ConfigError(f"--out {out} is for several searches; the report of one lies in its folder, {runs[0]}")
    else:
        _search(runs[0], train_log, watch, _EVERY_S if every is None else every)


def _search(run: Path, train_log: Path | None, watch: bool, every_s: float) -> None:
    from nas_core.report import read_run, watch_report, write_report
    from nas_core.report.run import damaged, finalists_text
    from nas_core.report.search_page import LONGEST_S

    if not 0 < every_s <= LONGEST_S:
        raise ConfigError(f"--every is {every_s:g}; expected seconds above 0, at most {LONGEST_S}")
    if watch:
        try:
            watch_report(run, train_log, every_s, typer.echo)
        except KeyboardInterrupt:
            typer.echo(f"no longer watched: {run / 'report.html'} stays as it is", err=True)
            raise typer.Exit(EXIT_INTERRUPTED) from None
    found = read_run(run)
    if found.finalists:
        with damaged(run):
            typer.echo(finalists_text(found))
    if not watch:
        typer.echo(f"wrote {write_report(run, train_log, every_s)}")


def _comparison(folders: list[Path], out: Path | None, force: bool) -> None:
    from nas_core.report import comparison_table, read_run, write_comparison
    from nas_core.report.run import damaged

    page = folders[0] / _COMPARISON if out is None else new_output(out, ".html", "page", force)
    with damaged(folders[0].parent):
        typer.echo(comparison_table([read_run(folder) for folder in folders]).text())
        typer.echo(f"wrote {write_comparison(folders, page)}")


@app.command("architecture", short_help="The layers of architectures, and a picture of them.")
def architecture(
    files: Annotated[list[Path], typer.Argument(help="Architectures (A.json ..), drawn beside each other.")],
    out: Annotated[Path | None, typer.Option(help="The picture (.png), default A.png beside A.json.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing picture.")] = False,
) -> None:
    """Print the layers of architectures and draw them."""
    from nas_core.files import write_atomic
    from nas_core.report import architecture_picture, layers_table
    from nas_core.space import Architecture

    picture = files[0].with_suffix(".png") if out is None else out
    if picture in files:
        raise ConfigError(f"--out is {picture}; expected the name of a picture that ends in .png")
    picture = new_output(picture, ".png", "picture", force)
    name, count = Counter(file.stem for file in files).most_common(1)[0]
    if count > 1:
        raise ConfigError(f"{count} files are named {name!r}; pictures name networks by their files, rename them")
    networks = {file.stem: Architecture.load(file) for file in files}
    content = architecture_picture(networks)
    for name, architecture in networks.items():
        typer.echo(f"{name}\n{layers_table(architecture).text()}\n")
    write_atomic(picture, content)
    typer.echo(f"wrote {picture}")


app.command("latency", short_help="A page of measured latencies, and of what a model predicts of them.")(latency)
app.command("predictor", short_help="A page of a predictor against architectures whose value is known.")(predictor)
