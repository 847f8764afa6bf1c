"""Every command and option of the project as the page ``docs/reference/command-line.md``, read from the programs.

``python -m tools.command_line`` writes the page; a test says when it is out of date.
"""

from __future__ import annotations

import argparse
import inspect
import re
import textwrap
import types
import typing
from collections.abc import Iterable, Iterator
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, NamedTuple

import typer

from nas_core.adapters import ADAPTERS, adapter_parts
from nas_core.cli import COMMANDS, LAB, application
from nas_core.cli.report import DEFAULT
from nas_core.files import write_atomic
from nas_core.options import flag_of

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "command-line.md"
VALUES = {int: "N", float: "X", str: "TEXT", Path: "PATH"}
INTRODUCTION = """\
<!-- written by: python -m tools.command_line -->

# The command nas-ext

Every command and every option, as the programs themselves describe them: `nas-ext COMMAND --help` says the same.
Options of strategies and models of other distributions are not on this page; `--help` shows them where they are
installed. What the commands are for is told by the [how-to pages](../how-to/index.md) and the
[tutorials](../index.md).

All commands end with exit code 0, or with 2 and one line that says what was wrong with the input. `--debug`, anywhere
in the line, shows the traceback as well. `nas-ext --version` prints the version.
"""


def page() -> str:
    """The whole page."""
    parts: list[str] = [INTRODUCTION]
    hosts = [entry.name for entry in entry_points(group=ADAPTERS.group) if entry.dist and _ours(entry.dist)]
    adapters = set(hosts) & adapter_parts("commands").keys()
    for name in [*(command.name for command in COMMANDS), *sorted(adapters)]:
        parts += _named(application([name]), "nas-ext", name)
    for name in (command.name for command in LAB):
        app = application(["lab", name])
        lab = next(group.typer_instance for group in app.registered_groups if group.name == "lab")
        assert lab is not None
        parts += _named(lab, "nas-ext lab", name)
    for usage, said, options in _programs():
        parts += [f"## {usage}", said, *_list(options)]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def main() -> None:
    """Write the page."""
    write_atomic(PAGE, page())


def _ours(distribution: Any) -> bool:
    return str(distribution.metadata["Name"]).lower().replace("_", "-") == "nas-ext"


def _named(app: typer.Typer, path: str, name: str) -> Iterator[str]:
    """The command or the group of that name."""
    for group in app.registered_groups:
        if group.name == name and group.typer_instance is not None:
            said = group.help if isinstance(group.help, str) else group.typer_instance.info.help
            yield from _group(f"{path} {name}", group.typer_instance, "##", str(said))
    for command in app.registered_commands:
        if command.name == name:
            yield from _command(f"{path} {name}", command, "##")


def _group(path: str, app: typer.Typer, heading: str, said: str) -> Iterator[str]:
    """A group of commands."""
    yield f"{heading} {path}"
    yield _docstring(said)
    for info in app.registered_commands:
        yield from _command(f"{path} {_name(info)}", info, f"{heading}#")


def _command(path: str, info: Any, heading: str) -> Iterator[str]:
    """A command: what it does, how it is called, its arguments and options."""
    yield f"{heading} {path}"
    yield _docstring(info.help or info.callback.__doc__ or "")
    parameters = inspect.signature(info.callback, eval_str=True).parameters.values()
    told = [_parameter(one) for one in parameters if not typing.get_args(one.annotation)[1].hidden]
    words = [one.usage for one in told if one.usage]
    called = path.removesuffix(f" {DEFAULT}")
    yield f"```text\n{' '.join([called, *words, *(['[OPTIONS]'] if len(words) < len(told) else [])])}\n```"
    yield from _list((one.given, one.said) for one in sorted(told, key=lambda one: not one.usage))


class _Told(NamedTuple):
    given: str
    said: str
    usage: str
    """How an argument stands in the line; empty for options."""


def _parameter(parameter: inspect.Parameter) -> _Told:
    """How a parameter of a command's function is given, and what it is."""
    annotation, info = typing.get_args(parameter.annotation)[:2]
    kinds = [kind for kind in typing.get_args(annotation) if kind is not type(None)]
    union = isinstance(annotation, types.UnionType) or typing.get_origin(annotation) is typing.Union
    kind = kinds[0] if union else annotation
    many = typing.get_origin(kind) is list
    kind = typing.get_args(kind)[0] if many else kind
    required = parameter.default is inspect.Parameter.empty
    default = None if required or kind is bool or many else parameter.default
    value = info.metavar or VALUES.get(kind, "TEXT")
    at_least = [f"at least {info.min:g}"] if info.min is not None else []
    if isinstance(info, typer.models.ArgumentInfo):
        name = (info.metavar or parameter.name.upper()).strip("[]") + (" ..." if many else "")
        return _Told(name, _described(info.help or "", at_least, default), name if required else f"[{name}]")
    declared = [one for one in (info.default, *(info.param_decls or ())) if isinstance(one, str)]
    flags = ", ".join(declared or [flag_of(parameter.name)])
    if kind is bool and not declared:
        flags = f"{flags}, --no-{flags.removeprefix('--')}"
    notes = [*(["required"] if required else []), *(["may be given several times"] if many else []), *at_least]
    return _Told(flags if kind is bool else f"{flags} {value}", _described(info.help or "", notes, default), "")


def _name(info: Any) -> str:
    return str(info.name or info.callback.__name__.replace("_", "-"))


def _programs() -> Iterator[tuple[str, str, list[tuple[str, str]]]]:
    """Programs of the adapters and the options of fairseq's models and task: title, description, options."""
    from fairseq.criterions.label_smoothed_cross_entropy import LabelSmoothedCrossEntropyCriterion
    from fairseq.tasks.language_modeling import LanguageModelingTask
    from fairseq.tasks.masked_lm import MaskedLMTask
    from fairseq.tasks.translation import TranslationTask

    import naslib_ext.benchmark as benchmark
    import nni_ext.nnictl as nnictl
    import nni_ext.trial as trial
    import timm_ext.launch as launch
    from fairseq_ext.distillation import DistilledLabelSmoothedCrossEntropy
    from fairseq_ext.families import LANGUAGE, MASKED_LM, TRANSLATION
    from fairseq_ext.task import SupernetLanguageModelingTask, SupernetMaskedLMTask, SupernetTranslationTask
    from timm_ext import options as training

    for model, family, task, plain in (
        ("", TRANSLATION, SupernetTranslationTask, TranslationTask),
        (" of language models", LANGUAGE, SupernetLanguageModelingTask, LanguageModelingTask),
        (" of masked language models", MASKED_LM, SupernetMaskedLMTask, MaskedLMTask),
    ):
        models, known, told = (argparse.ArgumentParser(add_help=False) for _ in range(3))
        family.add_arguments(models)
        plain.add_args(known)
        task.add_args(told)
        theirs = {given for given, _ in _argparse_options(known)}
        listed = ", ".join(f"`{name}`" for name in family.architectures)
        yield (
            f"fairseq-train --arch{model}",
            _wrapped(
                "Options of the models of this plug-in; what is not given has its value from the architecture."
                f" The architectures: {listed}."
            ),
            _argparse_options(models),
        )
        yield (
            f"fairseq-train --task supernet_{family.task}",
            f"Options of the task, beside those of fairseq's `{family.task}`.",
            [one for one in _argparse_options(told) if one[0] not in theirs],
        )
    criterion, own = argparse.ArgumentParser(add_help=False), argparse.ArgumentParser(add_help=False)
    DistilledLabelSmoothedCrossEntropy.add_args(criterion)
    LabelSmoothedCrossEntropyCriterion.add_args(own)
    known = {given for given, _ in _argparse_options(own)}
    yield (
        "fairseq-train --criterion distilled_label_smoothed_cross_entropy",
        _wrapped(
            "Options of training with a teacher, beside those of `label_smoothed_cross_entropy`. They are also those of"
            " `distilled_cross_entropy` and `distilled_masked_lm`."
        ),
        [one for one in _argparse_options(criterion) if one[0] not in known],
    )
    for title, module, parser in (
        ("python -m timm_ext.train", training, training.parser()),
        ("python -m timm_ext.launch", launch, None),
        ("python -m nni_ext.trial", trial, trial.parser()),
        ("python -m nni_ext.nnictl", nnictl, None),
        ("python -m naslib_ext.benchmark", benchmark, benchmark.parser()),
    ):
        said = parser.description if parser is not None and module is training else module.__doc__
        yield title, _docstring(said or ""), _argparse_options(parser) if parser else []


def _argparse_options(parser: argparse.ArgumentParser) -> list[tuple[str, str]]:
    return [_argparse_option(action) for action in parser._actions if action.dest != "help"]


def _argparse_option(action: argparse.Action) -> tuple[str, str]:
    choices = f"{{{','.join(map(str, action.choices))}}}" if action.choices else ""
    name = "" if action.nargs == 0 else str(action.metavar or choices or action.dest.upper())
    value = f" {name}{' ...' if action.nargs == '+' else ''}" if name else ""
    default = (
        None if action.default in (None, False, argparse.SUPPRESS, []) or "($" in str(action.help) else action.default
    )
    told = " ".join(default) if isinstance(default, list) and all(isinstance(one, str) for one in default) else default
    text = (action.help or "").replace("%(default)s", str(action.default)).replace("%%", "%")
    return f"{', '.join(action.option_strings)}{value}", _described(text, ["required"] if action.required else [], told)


def _described(text: str, notes: list[str], default: Any) -> str:
    if isinstance(default, list):
        default = " ".join(map(str, default))
    if default not in (None, "") and "default" not in text.lower():
        notes = [*notes, f"default: {default}"]
    return _markdown(text) + (f" ({'; '.join(notes)})" if notes else "")


def _list(options: Iterable[tuple[str, str]]) -> Iterator[str]:
    lines = [_wrapped(f"- `{given}`: {said}".rstrip(": "), indent="  ") for given, said in options]
    if lines:
        yield "\n".join(lines)


def _markdown(text: str) -> str:
    """A docstring's text as one line of Markdown."""
    plain = " ".join(re.sub(r":\w+:`~?([^`]*)`", r"`\1`", text).replace("``", "`").split())
    return "".join(
        part if at % 2 else re.sub(r"([<>*])", r"\\\1", part) for at, part in enumerate(re.split("(`[^`]*`)", plain))
    )


def _docstring(text: str) -> str:
    """Paragraphs, lists (each line of them indented) and code (indented by four) of a docstring."""
    without_usage = re.sub(r"\A``[^`]*``: ", "", inspect.cleandoc(text).replace("\b", ""))
    whole = without_usage[:1].upper() + without_usage[1:]
    parts = []
    for part in re.split(r"\n\s*\n", whole):
        lines = part.strip("\n").splitlines()
        if all(line.startswith("    ") for line in lines):
            parts.append("\n".join(["```text", *(line[4:] for line in lines), "```"]))
        elif len(lines) > 1 and lines[0].endswith(":") and all(line.startswith("  ") for line in lines[1:]):
            listed = "\n".join(f"- {_markdown(line)}" for line in lines[1:])
            parts.append(f"{_markdown(lines[0])}\n\n{listed}")
        else:
            parts.append(_wrapped(_markdown(part)))
    return "\n\n".join(parts)


def _wrapped(text: str, indent: str = "") -> str:
    return textwrap.fill(text, 120, subsequent_indent=indent, break_on_hyphens=False, break_long_words=False)


if __name__ == "__main__":
    main()
