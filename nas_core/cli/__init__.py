"""The command `nas-ext`.

Each command is a module of this folder with a line in `COMMANDS`, or in `LAB` for those of ``nas-ext lab``. The module
offers either ``app`` (a `typer.Typer`
with sub-commands), ``command`` (one function), or ``make_command`` (gives the function, where its options depend on
what is installed). Only the module that was asked for is imported, so that commands which
need no torch start at once. Adapters offer further commands as entry points.

Every `NasExtError` ends as one line on stderr and exit code 2. With ``--debug`` the traceback is shown as well.
"""

from __future__ import annotations

import contextlib
import importlib
import signal
import sys
import threading
import traceback
from collections.abc import Iterator, Sequence
from importlib.metadata import entry_points
from typing import Annotated, NamedTuple

import typer

from nas_core import __version__
from nas_core.errors import MissingHostError, NasExtError
from nas_core.registry import first_line

__all__ = ["COMMANDS", "COMMANDS_OF_ADAPTERS", "LAB", "Command", "application", "main"]

EXIT_ERROR = 2
EXIT_INTERRUPTED = 130


class Command(NamedTuple):
    """One line of the table of commands."""

    name: str
    module: str
    help: str


COMMANDS = (
    Command("quickstart", "nas_core.cli.quickstart", "Write a folder with a small example that runs."),
    Command("latency", "nas_core.cli.latency", "Measure latency, fit and check latency models."),
    Command("search", "nas_core.cli.search", "Search architectures under constraints."),
    Command("elastic", "nas_core.cli.elastic", "Make a trained network the largest subnet of a supernet."),
    Command("extract", "nas_core.cli.extract", "Save a subnet of a supernet as a static model."),
    Command("export", "nas_core.cli.export", "Write a subnet as ONNX or as torch.export programs."),
    Command("report", "nas_core.cli.report", "Pages about searches, measured latencies and predictors."),
    Command("doctor", "nas_core.cli.doctor", "Show which hosts, accelerators and plug-ins are usable."),
)

LAB = (
    Command("space", "nas_core.cli.space", "List, show and export search spaces."),
    Command("calibrate", "nas_core.cli.calibrate", "Estimate standalone quality from a few trained networks."),
    Command("predictor", "nas_core.cli.predictor", "Train and use predictors that read architectures as graphs."),
    Command("proxies", "nas_core.cli.proxies", "Score untrained networks by zero-cost proxies."),
    Command("study", "nas_core.cli.study", "Study whether trained supernets can be trusted."),
    Command("user-dir", "nas_core.cli.user_dir", "Print the folder for fairseq's --user-dir."),
)
"""Commands of ``nas-ext lab``: spaces, estimates and studies."""

COMMANDS_OF_ADAPTERS = "nas_ext.commands"
"""Entry points of further commands, each a `typer.Typer` under the command's name."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run `nas-ext` with `argv` (default: the process arguments) and return its exit code."""
    arguments, debug = _take_debug(list(sys.argv[1:] if argv is None else argv))
    with _asked_to_end():
        return _run(arguments, debug)


@contextlib.contextmanager
def _asked_to_end() -> Iterator[None]:
    """SIGTERM ends the command as Ctrl-C does, with what is half written removed and what is kept written."""
    ours = threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    if ours:
        signal.signal(signal.SIGTERM, _leave)
    try:
        yield
    finally:
        if ours:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _leave(number: int, _frame: object) -> None:
    raise SystemExit(128 + number)


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
        where = f"{error.filename}: " if error.filename else ""
        return _fail(f"{where}{error.strerror or error}; check the path, its rights and the free space", debug)
    return 0


def _take_debug(arguments: list[str]) -> tuple[list[str], bool]:
    """The arguments without ``--debug``, which may stand anywhere before a ``--``."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    kept = [argument for argument in arguments[:end] if argument != "--debug"]
    return kept + arguments[end:], len(kept) < end


def application(arguments: Sequence[str]) -> typer.Typer:
    """Return the application with the requested command in full and the others by name only."""
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
    app.callback()(_global_options)
    wanted, further, *_ = [*(argument for argument in arguments if not argument.startswith("-")), None, None]
    _add_commands(app, COMMANDS, wanted)
    lab = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
    _add_commands(lab, LAB, further if wanted == "lab" else None)
    app.add_typer(lab, name="lab", help="Spaces, predictors, calibration, zero-cost proxies and studies.")
    for entry in entry_points(group=COMMANDS_OF_ADAPTERS):
        if wanted in (None, entry.name):
            try:
                app.add_typer(entry.load(), name=entry.name)
            except Exception as error:  # what another distribution does at its import is not ours
                if wanted == entry.name:
                    raise MissingHostError(
                        f"command {entry.name!r} ({entry.value}) does not import: {first_line(error)}"
                    ) from None
    return app


def _add_commands(app: typer.Typer, commands: Sequence[Command], wanted: str | None) -> None:
    for command in commands:
        if command.name != wanted:
            app.command(command.name, help=command.help)(_name_only)
            continue
        module = importlib.import_module(command.module)
        if hasattr(module, "app"):
            app.add_typer(module.app, name=command.name, help=command.help)
        elif hasattr(module, "make_command"):
            app.command(command.name)(module.make_command())
        else:
            app.command(command.name, help=command.help)(module.command)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"nas-ext {__version__}")
        raise typer.Exit


def _global_options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Neural architecture search for fairseq, timm, NNI and NASLib."""


def _name_only() -> None:
    """Stands for a command that was not asked for in the list of commands."""


def _fail(message: str, debug: bool, code: int = EXIT_ERROR) -> int:
    if debug:
        traceback.print_exc()
    print(f"nas-ext: error: {message}", file=sys.stderr)
    return code
