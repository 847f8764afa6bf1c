"""Checks of an experiment before its start."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nas_core.errors import ConfigError, DataError, NasExtError
from nas_core.search.metrics import metric_named
from nni_ext.compat import nni_module
from nni_ext.hpo.tuner import SearchTuner

_FEATURE = "checking experiments of NNI"
_TRIAL = "nni_ext.trial"
_FILES = ("--checkpoint", "--data", "--latency-model", "--calibration")


def experiment_warnings(class_args: Mapping[str, Any], metric: str, mode: str, config: Any) -> list[str]:
    """Return a warning for each setting that misleads or fails later.

    Args:
        class_args: arguments of the tuner.
        mode: ``minimize`` or ``maximize``.
        config: canonical experiment of NNI.
    """
    typed = str(getattr(config, "trial_command", None) or "")
    warnings = []
    if class_args.get("optimize_mode") is None:
        warnings.append(
            f"classArgs lacks optimize_mode: the tuner {mode}s {metric}, but NNI's page calls the largest value the"
            f" best trial; add 'optimize_mode: {mode}'"
        )
    try:
        command = shlex.split(typed)
    except ValueError as error:  # an open quotation
        problem = f"trialCommand {typed!r} is no command of a shell ({error})"
        return [*warnings, f"{problem}: every trial would fail; close the quotation"]
    ours = _TRIAL in command
    shown = _option(command, "--metric") or "loss" if ours else metric
    calibrated = ours and _option(command, "--calibration") is not None  # only its file knows the direction
    return [
        *warnings,
        *([] if calibrated else _about_default(shown, metric, mode, ours)),
        *(_about_files(command, config) if ours else []),
    ]


def _about_default(shown: str, metric: str, mode: str, ours: bool) -> list[str]:
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
    if getattr(config.training_service, "platform", None) != "local":
        return []
    folder = Path(str(config.trial_code_directory))
    return [
        f"{option} {value} of trialCommand does not exist, seen from {folder}: every trial would fail"
        for option in _FILES
        if (value := _option(command, option)) and "$" not in value and not (folder / Path(value).expanduser()).exists()
    ]


def _option(command: list[str], name: str) -> str | None:
    for place, word in enumerate(command):
        if word == name and place + 1 < len(command):
            return command[place + 1]
        if word.startswith(f"{name}="):
            return word.partition("=")[2]
    return None


@dataclass(frozen=True)
class Checked:
    """A valid experiment."""

    first: dict[str, Any]
    """NNI's parameters of the first trial by label"""
    warnings: list[str]
    """Settings that mislead or fail later, one line each"""


def check_experiment(path: Path, import_code: bool = False) -> Checked:
    """Check the experiment of a YAML and draw the parameters of its first trial.

    The tuner comes from this package, whatever ``codeDirectory`` is.

    Args:
        import_code: import and run the module of a tuner derived from ours.
    """
    config_class = nni_module("nni.experiment.config", _FEATURE).ExperimentConfig
    if not path.is_file():
        raise DataError(f"no file {path}; give an experiment YAML of NNI")
    try:
        config = config_class.load(path)
        config.validate()
        config = config.canonical_copy()
    except Exception as error:  # NNI raises anything
        reason = str(error).strip() or "a field that is missing or misplaced"
        raise DataError(f"{path} is no experiment NNI takes ({type(error).__name__}: {reason})") from None
    finally:  # after an error, the folder of the file stays the base of all later paths
        nni_module("nni.experiment.config.utils", _FEATURE).unset_base_path()
    settings = {} if config.tuner is None else config.tuner.json()
    try:
        tuner = make_tuner(path, settings, import_code)
        tuner.update_search_space(config.search_space)
        first: dict[str, Any] = tuner.generate_parameters(0)
    except NasExtError as error:
        raise type(error)(f"{path}: {error}", command_line=f"{path}: {error.command_line}") from None
    return Checked(first, experiment_warnings(settings.get("classArgs") or {}, tuner.metric, tuner.mode, config))


def make_tuner(path: Path, settings: Mapping[str, Any], import_code: bool) -> SearchTuner:
    """Return the tuner of a YAML's ``tuner`` with its arguments."""
    name, given = settings.get("name"), settings.get("className")
    if not name and not given:
        raise ConfigError("the experiment names no tuner; give one, such as 'tuner: {name: nas-ext}'")
    class_name = _registered_class(name) if name else given
    arguments = settings.get("classArgs") or {}
    if not isinstance(arguments, Mapping) or not all(isinstance(key, str) for key in arguments):
        raise ConfigError(f"classArgs are {arguments!r}; expected names and values, such as 'seed: 1'")
    if class_name == f"{SearchTuner.__module__}.{SearchTuner.__name__}":
        return SearchTuner(**arguments)
    if name:
        raise ConfigError(f"the tuner is {class_name}, which is none of ours: nothing was checked")
    if not import_code:
        raise ConfigError(
            f"the tuner is {class_name} in {settings.get('codeDirectory')}, and a check does not run code of an"
            " experiment; if you trust it, --import-code imports it"
        )
    factory = nni_module("nni.tools.package_utils.tuner_factory", _FEATURE)
    try:
        tuner = factory.create_customized_class_instance(settings)
    except NasExtError:
        raise
    except Exception as error:  # of code that is not ours
        raise ConfigError(f"{class_name} cannot be made ({type(error).__name__}: {error})") from None
    if not isinstance(tuner, SearchTuner):
        raise ConfigError(f"the tuner is {type(tuner).__name__}, which is none of ours: nothing was checked")
    return tuner


def _registered_class(name: str) -> str:
    meta = nni_module("nni.tools.package_utils", _FEATURE).get_algo_meta(name)
    if meta is None:
        raise ConfigError(f"NNI knows no tuner {name}; 'nas-ext nni register' makes ours known to it")
    return str(meta.class_name)
