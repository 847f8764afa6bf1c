"""``nas-ext lab study``: study trained supernets; write a page and JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from nas_core import __version__
from nas_core.cli.options import settings_help, with_options
from nas_core.device import usable_devices
from nas_core.errors import ConfigError, check_choice
from nas_core.files.reading import real_path
from nas_core.files.writing import make_folder, write_json
from nas_core.options import config_from, read_pairs
from nas_core.report import Page
from nas_core.studies.base import Study, StudyResult, Subject, open_subjects
from nas_core.studies.gap import GAP
from nas_core.studies.routing import ROUTING

STUDIES: dict[str, Study] = {study.name: study for study in (GAP, ROUTING)}


def _study(
    name: Annotated[str, typer.Argument(help="Name of the study, from the list above.")],
    checkpoint: Annotated[
        list[Path], typer.Option(help="Checkpoint of a trained supernet; repeatable to compare several.")
    ],
    out: Annotated[Path, typer.Option(help="Output folder.")],
    data: Annotated[Path | None, typer.Option(help="Data folder; default: the supernet's training data.")] = None,
    valid_subset: Annotated[str, typer.Option(help="Split for evaluations.")] = "valid",
    valid_samples: Annotated[
        int | None, typer.Option(min=1, help="Number of examples of the split; default: all.")
    ] = None,
    device: Annotated[str, typer.Option(help="Device: cpu, cuda, cuda:1.")] = "cpu",
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Setting of the study, from its list above; repeatable."),
    ] = None,
) -> None:
    check_choice("study", name, STUDIES)
    study = STUDIES[name]
    if len(usable_devices(device)) > 1:
        raise ConfigError(f"--device is {device}; expected one device")
    config = config_from(study.config, read_pairs("set", settings or []), f"setting of study {name}")
    opened = {
        "data": str(real_path(data)) if data else None,
        "valid_subset": valid_subset,
        "valid_samples": valid_samples,
        "device": device,
    }
    subjects = open_subjects(checkpoint, **opened)
    result = study.run(subjects, config, out)
    written = _write(study, subjects, opened, config, result, out)
    typer.echo(result.table.without_empty_columns().text())
    typer.echo("\n" + result.summary.without_empty_columns().text())
    typer.echo(f"wrote {', '.join(map(str, written))}")


def make_command() -> Callable[..., None]:
    """Return the command, whose help lists all studies and their settings."""
    sections = [
        section
        for name, study in STUDIES.items()
        for section in (f"{name}: {study.purpose}\n\n{study.about}", settings_help(f"Settings of {name}", study.config))
    ]
    return with_options(_study, {}, "\n\n".join(["Study how reliable trained supernets are.", *sections]))


def _write(
    study: Study, subjects: Sequence[Subject], settings: Mapping[str, Any], config: Any, result: StudyResult, out: Path
) -> list[Path]:
    make_folder(out)
    data, html = (out / f"{study.name}.{suffix}" for suffix in ("json", "html"))
    write_json(
        data,
        {
            "study": study.name,
            "nas_ext": __version__,
            "checkpoints": {subject.name: str(real_path(subject.path)) for subject in subjects},
            "space": subjects[0].supernet.space.name,
            "opened": dict(settings),
            "settings": asdict(config),
            "summary": list(result.summary.rows),
            "rows": list(result.table.rows),
            "notes": list(result.notes),
            **result.details,
        },
    )
    page = Page(f"Study {study.name}", study.purpose)
    page.heading("Figures")
    page.table(result.summary.without_empty_columns())
    for caption, plot in result.plots.items():
        page.plot(plot, f"plot of the study {study.name}", caption)
    for note in result.notes:
        page.paragraph(note)
    page.heading("Measurements")
    page.table(result.table.without_empty_columns())
    page.details("Settings", {**settings, **asdict(config)})
    page.save(html)
    return [html, data]
