"""``python -m examples.papers NAME DATA=..``: run the experiment of a paper.

Finished steps are skipped, and an interrupted step is resumed.
"""

from __future__ import annotations

import argparse
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from examples.papers.experiment import FOLDER, Experiment, Step, executable, list_experiments, read_experiment
from examples.papers.stamps import Stamps
from nas_core.errors import ConfigError, NasExtError, unknown_choice
from nas_core.options import read_pairs


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "python -m examples.papers",
        description="Run the commands of a paper's experiment one after another.",
        epilog="Options after -- are added to the command of --step, such as -- --max-update 100 --cpu.",
    )
    parser.add_argument("name", nargs="?", help="name of an experiment, or a YAML file; default: list the experiments")
    parser.add_argument("values", nargs="*", metavar="VARIABLE=VALUE", help="variables, such as DATA=wmt14_bin OUT=run")
    parser.add_argument("--show", action="store_true", help="print the YAML file of the experiment")
    parser.add_argument("--step", action="append", default=[], metavar="STEP", help="run only this step; repeatable")
    parser.add_argument("--dry-run", action="store_true", help="print the commands instead of running them")
    return parser


def run(
    experiment: Experiment,
    settings: Mapping[str, str],
    names: Sequence[str],
    extra: Sequence[str] = (),
    dry_run: bool = False,
) -> None:
    """Run steps of an experiment.

    Args:
        settings: variable -> value.
        names: steps to run; default: all that are not optional.
        extra: further options of the command of a single step.
        dry_run: print the commands instead of running them.
    """
    for name in names:
        if name not in experiment.steps:
            raise unknown_choice(f"step of {experiment.name}", name, experiment.steps)
    if extra and len(names) != 1:
        raise ConfigError(f"options after -- ({shlex.join(extra)}) need exactly one --step; give one")
    steps = [experiment.steps[name] for name in names] or [
        step for step in experiment.steps.values() if not step.optional
    ]
    if not dry_run:  # report wrong settings before the first step runs
        placeholders = {name: "" for name, v in experiment.variables.items() if v.finalist_of and not names}
        values = experiment.values(settings)
        for step in steps:
            command = experiment.command(step, {**placeholders, **values})
            if command == experiment.command(step, values, partly=True):
                Stamps(experiment, values).finished_note(step, command)
    for number, step in enumerate(steps, start=1):
        values = experiment.values(settings)
        command = experiment.command(step, values, partly=dry_run)
        title = f"[{number}/{len(steps)}] {step.name}: {step.about}"
        if dry_run:
            print(f"# {title}\n{_format_command([*command, *extra])}\n")
            continue
        stamps = Stamps(experiment, values)
        note = stamps.finished_note(step, command)
        if note is not None and not names:
            print(f"{title}: done before{note and ' ' + note}", flush=True)
            continue
        print(f"{title}\n{_format_command([*command, *extra])}", flush=True)
        _execute(step, [*command, *extra], stamps.makes(step))
        stamps.write(step, command, extra)


def _execute(step: Step, command: Sequence[str], output: Path) -> None:
    process = subprocess.run([executable(command[0]), *command[1:]], check=False)
    if process.returncode:
        raise NasExtError(
            f"step {step.name}: {command[0]} failed with exit code {process.returncode}; see its output, then run the"
            " same command again to resume"
        )
    if not output.exists():
        raise NasExtError(f"step {step.name} ended without writing {output}; see its output")


def _format_command(command: Sequence[str]) -> str:
    """Format a command for a shell, on several lines."""
    lines, line = [], ""
    for word in command:
        quoted = word if word.startswith("$") or "/$" in word else shlex.quote(word)
        starts = word.startswith("-") and not word[1:2].isdigit()
        if line and starts and len(line) + len(quoted) > 90:
            lines.append(line)
            line = "   "
        line = f"{line} {quoted}" if line else quoted
    return " \\\n".join([*lines, line])


def _format_list() -> str:
    rows = [(name, read_experiment(name)) for name in list_experiments()]
    width = max(len(name) for name, _ in rows)
    return "\n".join(
        f"{name:{width}}  {experiment.about}\n{'':{width}}  steps: {', '.join(experiment.steps)}"
        for name, experiment in rows
    )


def main(arguments: Sequence[str] | None = None) -> int:
    words = list(sys.argv[1:] if arguments is None else arguments)
    extra: list[str] = []
    if "--" in words:
        words, extra = words[: words.index("--")], words[words.index("--") + 1 :]
    options = _parser().parse_intermixed_args(words)
    try:
        if options.name is None:
            print(_format_list())
            return 0
        experiment = read_experiment(options.name)
        if options.show:
            path = FOLDER / f"{options.name}.yml"
            print((path if path.is_file() else Path(options.name)).read_text(encoding="utf-8"), end="")
            return 0
        run(experiment, read_pairs("variables", options.values), options.step, extra, options.dry_run)
    except NasExtError as error:
        print(f"papers: error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\npapers: interrupted; run the same command again to resume", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
