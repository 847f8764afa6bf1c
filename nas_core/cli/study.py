"""``nas-ext lab study``: whether trained supernets can be trusted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from nas_core.cli.options import settings_help, with_options
from nas_core.cli.study_writing import table_of, write_study
from nas_core.device import usable_devices
from nas_core.errors import ConfigError
from nas_core.files import real_path
from nas_core.options import config_from, read_pairs, read_texts
from nas_core.studies import STUDIES, open_subjects


def _study(
    name: Annotated[str, typer.Argument(help="A name of the list above.")],
    checkpoint: Annotated[
        list[Path], typer.Option(help="Checkpoint of a trained supernet; repeatable, to compare several.")
    ],
    out: Annotated[Path, typer.Option(help="Folder for the page, the picture and JSON.")],
    data: Annotated[
        Path | None, typer.Option(help="Data folder; default: the one the supernet was trained on.")
    ] = None,
    valid_subset: Annotated[str, typer.Option(help="Split whose examples are taken.")] = "valid",
    valid_sentences: Annotated[int | None, typer.Option(min=1, help="Use only so many of its examples.")] = None,
    device: Annotated[str, typer.Option(help="cpu, cuda, cuda:1.")] = "cpu",
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="A setting of the study, by a name of its list; repeatable."),
    ] = None,
) -> None:
    study = STUDIES.get(name)
    if len(usable_devices(device)) > 1:
        raise ConfigError(f"--device {device}: a study runs on one device; give one of them")
    typed = read_texts(study.config, read_pairs("set", settings or []))
    config = config_from(study.config, typed, f"setting of study {name}")
    opened = {
        "data": str(real_path(data)) if data else None,
        "valid_subset": valid_subset,
        "valid_sentences": valid_sentences,
        "device": device,
    }
    subjects = open_subjects(checkpoint, **opened)
    result = study.run(subjects, config, out)
    written = write_study(study, subjects, opened, config, result, out)
    typer.echo(table_of(result.columns, result.rows).text())
    typer.echo("\n" + table_of(result.summary_columns, result.summary).text())
    typer.echo(f"wrote {', '.join(map(str, written))}")


def make_command() -> Callable[..., None]:
    """Return the command, whose help has all studies there are now, with their settings."""
    listed = [
        part
        for name, study in STUDIES.items()
        for part in (f"{name}: {study.purpose}\n\n{study.about}", settings_help(f"Settings of {name}", study.config))
    ]
    return with_options(_study, {}, "\n\n".join(["Study whether trained supernets can be trusted.", *listed]))
