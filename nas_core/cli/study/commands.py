"""One sub-command for each study, with the options of its settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from nas_core.cli.options import flags_named, parameters_of, with_options
from nas_core.cli.study.writing import table_of, write_study
from nas_core.device import usable_devices
from nas_core.errors import ConfigError
from nas_core.files import real_path
from nas_core.options import config_from, options_of
from nas_core.studies import STUDIES, Study, open_subjects

__all__ = ["app", "command_of"]

app = typer.Typer(no_args_is_help=True, help="Ask whether trained supernets can be trusted.")


def command_of(study: Study) -> Callable[..., None]:
    """The function of a study's sub-command."""
    known = {option.name: option for option in options_of(study.config)}

    def command(
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
        *,
        options: Mapping[str, Any],
    ) -> None:
        if len(usable_devices(device)) > 1:
            raise ConfigError(f"--device {device}: a study runs on one device; give one of them")
        with flags_named(list(known)):
            config = config_from(
                study.config, {name: known[name].read(value) for name, value in options.items()}, "option"
            )
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

    parameters = parameters_of({option.name: [("", option)] for option in known.values()})
    return with_options(command, {"options": parameters}, f"{study.purpose}\n\n{study.about}")


for _name, _study in STUDIES.items():
    app.command(_name, short_help=_study.purpose)(command_of(_study))
