"""Command-line interface ``nas-ext``.

Each command is a module listed in `COMMANDS`, or in `LAB` for ``nas-ext lab``. The module defines ``app`` (a
`typer.Typer` with subcommands), ``command`` (a function) or ``make_command`` (returns a function whose options depend
on installed packages). It is imported only if its command is requested.

A `NasExtError` is printed as one line on stderr and gives exit code 2; ``--debug`` adds the traceback.
"""

from __future__ import annotations

import importlib
import sys
import traceback
from collections.abc import Sequence
from typing import Annotated, NamedTuple

import typer

from nas_core import __version__
from nas_core.adapters import adapter_parts
from nas_core.errors import MissingHostError, NasExtError
from nas_core.registry import import_object
from nas_core.signals import sigterm_as_exit

EXIT_ERROR = 2
EXIT_INTERRUPTED = 130


class Command(NamedTuple):
    """Name, module and help of a command."""

    name: str
    module: str
    help: str


COMMANDS = (
    Command("quickstart", "nas_core.cli.quickstart", "Write a folder with a small example that runs."),
    Command("latency", "nas_core.cli.latency", "Measure latency; fit and check latency models."),
    Command("search", "nas_core.cli.search", "Search for architectures within limits such as latency."),
    Command("compress", "nas_core.cli.compress", "Compress a trained network below a latency limit."),
    Command("elastic", "nas_core.cli.elastic", "Convert a trained network to a supernet."),
    Command("extract", "nas_core.cli.extract", "Save a subnet of a supernet as a static model."),
    Command("export", "nas_core.cli.export", "Export a subnet as ONNX or torch.export programs."),
    Command("report", "nas_core.cli.report", "Write HTML pages about searches, and print architectures."),
    Command("doctor", "nas_core.cli.doctor", "Show which hosts, accelerators and plug-ins are usable."),
)

LAB = (
    Command("space", "nas_core.cli.space", "List, show and export search spaces."),
    Command(
        "calibrate",
        "nas_core.cli.calibrate",
        "Estimate standalone metrics from inherited ones and a few trained networks.",
    ),
    Command("predictor", "nas_core.cli.predictor", "Train and use accuracy predictors on architecture graphs."),
    Command("study", "nas_core.cli.study", "Study how reliable trained supernets are."),
    Command("user-dir", "nas_core.cli.user_dir", "Print the folder for fairseq's --user-dir."),
)
"""Commands of ``nas-ext lab``"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``nas-ext`` and return its exit code.

    Args:
        argv: command-line arguments; default: those of the process.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    end = arguments.index("--") if "--" in arguments else len(arguments)
    remaining = [argument for argument in arguments[:end] if argument != "--debug"]
    with sigterm_as_exit():
        return _run(remaining + arguments[end:], debug=len(remaining) < end)


def _run(arguments: list[str], debug: bool) -> int:
    try:
        application(arguments)(arguments or ["--help"], prog_name="nas-ext")
    except SystemExit as exit_:  # how typer ends, with or without a usage error
        return exit_.code if isinstance(exit_.code, int) else int(exit_.code is not None)
    except KeyboardInterrupt:
        return _fail("interrupted", debug, EXIT_INTERRUPTED)
    except NasExtError as error:
        return _fail(error.command_line, debug)
    except BrokenPipeError:  # the reader of our output, such as head, has left
        sys.stderr.close()
        return 1
    except OSError as error:
        location = f"{error.filename}: " if error.filename else ""
        return _fail(f"{location}{error.strerror or error}; check the path, its permissions and the free space", debug)
    return 0


def application(arguments: Sequence[str]) -> typer.Typer:
    """Return the application; only the requested command is imported, others have just name and help."""
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
    app.callback()(_global_options)
    command_name, lab_command, *_ = [*(argument for argument in arguments if not argument.startswith("-")), None, None]
    _add_commands(app, COMMANDS, command_name)
    lab = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
    _add_commands(lab, LAB, lab_command if command_name == "lab" else None)
    app.add_typer(lab, name="lab", help="Spaces, predictors, calibration and studies.")
    if command_name in {"lab", *(command.name for command in COMMANDS)}:
        return app
    for name, target in adapter_parts("commands").items():
        try:
            app.add_typer(import_object(f"command {name!r}", target), name=name)
        except MissingHostError:
            if command_name == name:
                raise
    return app


def _add_commands(app: typer.Typer, commands: Sequence[Command], selected: str | None) -> None:
    for name, module_name, text in commands:
        if name != selected:
            app.command(name, help=text)(lambda: None)
            continue
        module = importlib.import_module(module_name)
        if hasattr(module, "app"):
            app.add_typer(module.app, name=name, help=text)
        elif hasattr(module, "make_command"):
            app.command(name)(module.make_command())
        else:
            app.command(name, help=text)(module.command)


def _show_version(requested: bool) -> None:
    if requested:
        typer.echo(f"nas-ext {__version__}")
        raise typer.Exit


def _global_options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Neural architecture search for fairseq, timm, Hugging Face, NNI, NASLib and Optuna."""


def _fail(message: str, debug: bool, code: int = EXIT_ERROR) -> int:
    if debug:
        traceback.print_exc()
    print(f"nas-ext: error: {message}", file=sys.stderr)
    return code
