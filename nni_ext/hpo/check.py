"""Checks of an NNI experiment before its start."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nas_core.errors import ConfigError, DataError, NasExtError
from nas_core.search.metrics import metric_named
from nni_ext.compat import nni_module
from nni_ext.hpo.tuner import SearchTuner

_FEATURE = "checking experiments of NNI"
_TRIAL = "nni_ext.trial"
_FILES = ("--checkpoint", "--data", "--latency-model")


def experiment_warnings(class_args: Mapping[str, Any], metric: str, mode: str, config: Any) -> list[str]:
    """Return warnings about settings that mislead or make trials fail.

    Args:
        class_args: arguments of the tuner.
        mode: ``minimize`` or ``maximize``.
        config: ``ExperimentConfig`` in NNI's canonical form.
    """
    text = str(config.trial_command or "")
    warnings = []
    if class_args.get("optimize_mode") is None:
        warnings.append(
            f"classArgs has no optimize_mode: the tuner {mode}s {metric}, but NNI's web page lists the largest value as"
            f" the best trial; add 'optimize_mode: {mode}'"
        )
    command = text.split()
    uses_trial = _TRIAL in command
    default = _option(command, "--metric") or "loss" if uses_trial else metric
    warnings += _default_warnings(default, metric, mode, uses_trial)
    return warnings + (_file_warnings(command, config) if uses_trial else [])


def _default_warnings(default: str, metric: str, mode: str, uses_trial: bool) -> list[str]:
    larger = metric_named(default).larger_is_better
    if uses_trial and metric not in ("default", default):
        return [
            f"the tuner optimises {metric}, but NNI's web page shows the trial's 'default', which is {default}; add"
            f" '--metric {metric}' to trialCommand"
        ]
    if larger is not None and larger != (mode == "maximize"):
        advised = "maximize" if larger else "minimize"
        return [f"optimize_mode is {mode}, but {'larger' if larger else 'smaller'} values of {default}, the trial's"
                f" 'default', are better; give 'optimize_mode: {advised}'"]  # fmt: skip
    return []


def _file_warnings(command: list[str], config: Any) -> list[str]:
    if getattr(config.training_service, "platform", None) != "local":
        return []
    folder = Path(str(config.trial_code_directory))
    return [
        f"trialCommand has {option} {value}, but this path does not exist (relative to {folder}), so every trial would"
        " fail; give an existing path"
        for option in _FILES
        if (value := _option(command, option)) and "$" not in value and not (folder / Path(value).expanduser()).exists()
    ]


def _option(command: list[str], name: str) -> str | None:
    words = " ".join(command).replace(f"{name}=", f"{name} ").split()
    return words[words.index(name) + 1] if name in words[:-1] else None


def check_experiment(path: Path) -> tuple[dict[str, Any], list[str]]:
    """Check an experiment YAML.

    Returns:
        Parameters of the first trial (label -> value), and warnings about settings, one line each.
    """
    config_class = nni_module("nni.experiment.config", _FEATURE).ExperimentConfig
    if not path.is_file():
        raise DataError(f"{path} does not exist; give an experiment YAML of NNI")
    try:
        config = config_class.load(path)
        config.validate()
        config = config.canonical_copy()
    except Exception as error:  # NNI raises anything
        reason = str(error).strip() or "a field is missing or misplaced"
        raise DataError(
            f"{path} is not a valid experiment of NNI ({type(error).__name__}: {reason}); correct the file"
        ) from None
    finally:  # after an error, the folder of the file stays the base of all later paths
        nni_module("nni.experiment.config.utils", _FEATURE).unset_base_path()
    settings = {} if config.tuner is None else config.tuner.json()
    arguments = settings.get("classArgs") or {}
    try:
        check_class(settings)
        tuner = SearchTuner(**arguments)
        tuner.update_search_space(config.search_space)
        parameters: dict[str, Any] = tuner.generate_parameters(0)
    except NasExtError as error:
        raise type(error)(f"{path}: {error}", command_line=f"{path}: {error.command_line}") from None
    return parameters, experiment_warnings(arguments, tuner.metric, tuner.mode, config)


def check_class(settings: Mapping[str, Any]) -> None:
    """Raise a ConfigError unless the ``tuner`` section of an experiment YAML names :class:`SearchTuner`."""
    name, class_name = settings.get("name"), settings.get("className")
    if name:
        meta = nni_module("nni.tools.package_utils", _FEATURE).get_algo_meta(name)
        if meta is None:
            raise ConfigError(f"tuner {name} is not registered with NNI; run 'nas-ext nni register' for nas-ext")
        class_name = meta.class_name
    if class_name != f"{SearchTuner.__module__}.{SearchTuner.__name__}":
        raise ConfigError(f"the tuner is {class_name}; this check supports only 'tuner: {{name: nas-ext}}'")
