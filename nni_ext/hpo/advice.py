"""What is worth knowing about an experiment before it starts, though it can be started without."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nas_core.search.metrics import metric_named

_TRIAL = "nni_ext.trial"
_FILES = ("--checkpoint", "--data", "--latency-model", "--calibration")
"""Options of our trial that name files."""


def experiment_warnings(class_args: Mapping[str, Any], metric: str, mode: str, config: Any) -> list[str]:
    """A sentence for each thing that would mislead or fail later.

    Args:
        class_args: of the tuner, as they stand in the YAML.
        metric: what the tuner goes by.
        mode: in which direction.
        config: NNI's experiment, in its canonical form.
    """
    typed = str(getattr(config, "trial_command", None) or "")
    try:
        command = shlex.split(typed)
    except ValueError as error:  # a quotation that does not end
        return [
            *_about_mode(class_args.get("optimize_mode"), metric, mode),
            f"trialCommand {typed!r} is no command of a shell ({error}): every trial would fail; close the quotation",
        ]
    ours = _TRIAL in command
    shown = _option(command, "--metric") or "loss" if ours else metric
    estimated = ours and _option(command, "--calibration") is not None  # of which only its file says what is better
    return [
        *_about_mode(class_args.get("optimize_mode"), metric, mode),
        *([] if estimated else _about_default(shown, metric, mode, ours)),
        *(_about_files(command, config) if ours else []),
    ]


def _about_mode(given: Any, metric: str, mode: str) -> list[str]:
    """NNI's page reads ``tuner.classArgs.optimize_mode`` of the YAML, and maximises where it finds none."""
    if given is not None:
        return []
    return [
        f"classArgs lacks optimize_mode: the tuner {mode}s {metric}, but NNI's page calls the largest value the best"
        f" trial; add 'optimize_mode: {mode}'"
    ]


def _about_default(shown: str, metric: str, mode: str, ours: bool) -> list[str]:
    """NNI's page shows the ``default`` of each trial's result, whatever the tuner goes by."""
    larger = metric_named(shown).larger_is_better
    if ours and metric not in ("default", shown):
        return [
            f"the tuner goes by {metric}, but NNI's page shows the trial's 'default', which is its {shown}; add"
            f" '--metric {metric}' to trialCommand"
        ]
    if larger is not None and larger != (mode == "maximize"):
        right = "maximize" if larger else "minimize"
        return [f"optimize_mode is {mode}, but {shown}, the trial's 'default', is better when it is"
                f" {'larger' if larger else 'smaller'}: tuner and page would take the worst for the best; give"
                f" 'optimize_mode: {right}'"]  # fmt: skip
    return []


def _about_files(command: list[str], config: Any) -> list[str]:
    """Warnings of files that trials on this machine would look for in vain."""
    if getattr(config.training_service, "platform", None) != "local":
        return []
    folder = Path(str(config.trial_code_directory))
    named = {option: _option(command, option) for option in _FILES}
    return [
        f"{option} {value} of trialCommand does not exist, seen from {folder}: every trial would fail"
        for option, value in named.items()
        if value and "$" not in value and not (folder / Path(value).expanduser()).exists()
    ]


def _option(command: list[str], name: str) -> str | None:
    """The value of ``--name value`` or ``--name=value``."""
    for place, word in enumerate(command):
        if word == name and place + 1 < len(command):
            return command[place + 1]
        if word.startswith(f"{name}="):
            return word.partition("=")[2]
    return None
