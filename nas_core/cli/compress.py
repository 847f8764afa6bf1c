"""``nas-ext compress``: compress a trained network to a faster static network."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from nas_core.cli.options import parameters_of, with_options
from nas_core.errors import ConfigError


def command(
    checkpoint: Annotated[Path, typer.Option(help="Checkpoint of fairseq or timm, or folder of transformers.")],
    out: Annotated[Path, typer.Option(help="Checkpoint or folder to write; it must not exist.")],
    limit: Annotated[
        str,
        typer.Option(
            metavar="latency_ms=LIMIT",
            help="Largest latency: milliseconds, or a percentage of the trained network's, such as latency_ms=50%.",
        ),
    ],
    settings: Mapping[str, Any],
    data: Annotated[
        str | None, typer.Option(help="Data folder; default: that of the training, if the checkpoint names it.")
    ] = None,
) -> None:
    from nas_core.compression.pipeline import CompressConfig, compress
    from nas_core.report.tables import Column, Table
    from nas_core.supernet.host import open_trained

    share, latency_ms = parse_limit(limit)
    config = CompressConfig(**settings)
    trained = open_trained(checkpoint, data=data, calibration_batches=config.calibration_batches, device=config.device)
    result = compress(trained, out, share=share, latency_ms=latency_ms, config=config, log=typer.echo)
    metrics = [metric for metric in result.rows[0].metrics if metric != "loss"]
    columns = [
        Column("name", "network"), Column("latency_ms", "latency (ms)", ".3g"), Column("share", "relative", ".2f"),
        Column("loss", "loss", ".3f"), *(Column(metric, f"{metric} (%)", ".2f") for metric in metrics),
        Column("updates", "updates", "d"),
    ]  # fmt: skip
    typer.echo(Table(columns, [{**asdict(row), **row.metrics} for row in result.rows]).text())
    typer.echo(f"{out}: architecture {result.architecture.key}, {result.parameters / 1e6:.2f} M parameters")


def parse_limit(text: str) -> tuple[float | None, float | None]:
    """Parse a latency limit.

    Returns:
        Fraction and milliseconds, one of them None: (0.5, None) for ``latency_ms=50%``, (None, 12.5) for
        ``latency_ms=12.5``.
    """
    name, _, value = text.partition("=")
    try:
        number = float(value.removesuffix("%"))
    except ValueError:
        number = 0.0
    if name != "latency_ms" or not 0 < number < float("inf") or (value.endswith("%") and number >= 100):
        raise ConfigError(f"--limit is {text}; expected latency_ms=MILLISECONDS, or latency_ms=PERCENT% below 100%")
    return (number / 100, None) if value.endswith("%") else (None, number)


def make_command() -> Callable[..., None]:
    """Return the command, with an option for each field of :class:`~nas_core.compression.CompressConfig`."""
    from nas_core.compression.pipeline import CompressConfig

    doc = "Compress a trained network below a latency limit, with the trained network as teacher."
    parameters: list[inspect.Parameter] = parameters_of(CompressConfig)
    return with_options(command, {"settings": parameters}, doc)
