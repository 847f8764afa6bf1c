"""``nas-ext report latency`` and ``report predictor``: pages about measurements and what models predict of them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nas_core.errors import ConfigError
from nas_core.files import real_path

_OUT = "The page (.html)"
_FORCE = "Replace an existing file that --out names."


def latency(
    data: Annotated[
        Path,
        typer.Argument(help="Folder of 'nas-ext latency dataset', or a .jsonl file of 'nas-ext latency collect'."),
    ],
    model: Annotated[
        Path | None,
        typer.Option(
            help="Hold this model against the measurements: one of 'latency train' for a folder, of 'latency fit' for"
            " a file."
        ),
    ] = None,
    runtime: Annotated[
        str | None,
        typer.Option(help="Of a folder, whose latencies; default: the model's, or the first one measured."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help=f"{_OUT}; default: report.html in the folder, or FILE.report.html beside the file."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help=_FORCE)] = False,
) -> None:
    """Write a page about measured latencies: what was measured and how noisily, size against latency, drift; with
    --model predicted against measured, errors by family and the worst networks. Print its tables."""
    from nas_core.report.measured import write_latency_report

    page = _page(out, force, data / "report.html" if data.is_dir() else data.with_suffix(".report.html"))
    _not_an_input(page, data, model)
    for table in write_latency_report(data, page, model, runtime):
        typer.echo(f"{table.text()}\n")
    typer.echo(f"wrote {page}")


def predictor(
    model: Annotated[Path, typer.Argument(help="A predictor of 'nas-ext lab predictor train' (.safetensors).")],
    data: Annotated[
        Path, typer.Option(help="JSON Lines: graph or architecture, and its known value, as for 'lab predictor train'.")
    ],
    reader: Annotated[str | None, typer.Option(help="What the architectures are; default: as in the training.")] = None,
    target: Annotated[str | None, typer.Option(help="Field with the known value; default: as in the training.")] = None,
    by: Annotated[
        str | None,
        typer.Option(help="Field that groups records; default: family, group or benchmark, where all have it."),
    ] = None,
    lower_is_better: Annotated[
        bool, typer.Option("--lower-is-better", help="The best architectures have the lowest values, as of a loss.")
    ] = False,
    out: Annotated[Path | None, typer.Option(help=f"{_OUT}; default: MODEL.report.html beside the predictor.")] = None,
    device: Annotated[str, typer.Option(help="cpu, cuda, cuda:1, mps.")] = "cpu",
    force: Annotated[bool, typer.Option("--force", help=_FORCE)] = False,
) -> None:
    """Write a page about a predictor against architectures whose value is known: predicted against known, the order it
    puts them in, errors by family, whether its spread holds, the worst and what it calls best. Print its quality."""
    from nas_core.report.measured import judged_records, write_predictor_report

    page = _page(out, force, model.with_suffix(".report.html"))
    _not_an_input(page, data, model)
    found = judged_records(
        model, data, reader=reader, target=target, by=by, lower_is_better=lower_is_better, device=device
    )
    typer.echo(f"{write_predictor_report(found, page).text()}\n")
    typer.echo(f"wrote {page}")


def _page(out: Path | None, force: bool, default: Path) -> Path:
    """Where the page goes: what ``--out`` names must not be there yet, the default page is replaced."""
    return default if out is None else new_output(out, ".html", "page", force)


def new_output(path: Path, suffix: str, what: str, force: bool) -> Path:
    """The file that ``--out`` names, if it may be written.

    Raises:
        ConfigError: it has another ending, is a folder, or exists and is not to be replaced.
    """
    if path.suffix != suffix:
        raise ConfigError(f"--out is {path}; expected the name of a {what} that ends in {suffix}")
    if path.is_dir():
        raise ConfigError(f"--out is {path}, a folder; give the name of a file")
    if path.exists() and not force:
        raise ConfigError(f"{path} exists; give another --out, or --force to replace it")
    return path


def _not_an_input(page: Path, *inputs: Path | None) -> None:
    for given in inputs:
        if given is not None and real_path(given) == real_path(page):
            raise ConfigError(f"--out is {page}, which is read; give another name")
