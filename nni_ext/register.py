"""Our tuners in NNI's list of algorithms, and experiments checked before they start."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from nas_core.errors import ConfigError, DataError, NasExtError
from nni_ext.advice import experiment_warnings
from nni_ext.compat import nni_module

__all__ = ["META", "Checked", "check_experiment", "register", "registered_in", "unregister"]

META = Path(__file__).with_name("algorithms.yml")
"""What ``nnictl algo register --meta`` takes."""

_FEATURE = "registering tuners with NNI"


def _ours() -> list[Any]:
    utils = nni_module("nni.tools.package_utils", _FEATURE)
    version = nni_module("nni", _FEATURE).__version__
    entries = yaml.safe_load(META.read_text(encoding="utf-8"))["algorithms"]
    return [utils.AlgoMeta.load({**entry, "nniVersion": version}) for entry in entries]


def register() -> list[str]:
    """Put our tuners into NNI's list, so that YAMLs can say ``tuner: {name: RankNAS}``; their names. Again is a no-op.

    Raises:
        ConfigError: NNI knows another algorithm under one of the names. MissingHostError: NNI is absent.
    """
    utils = nni_module("nni.tools.package_utils", _FEATURE)
    for meta in _ours():
        old = utils.get_algo_meta(meta.name)
        if old is not None and old.class_name != meta.class_name:
            raise ConfigError(
                f"NNI has {meta.name} as {old.class_name}, ours is {meta.class_name};"
                f" 'nnictl algo unregister {meta.name}' removes the other one"
            )
    for meta in _ours():
        if utils.get_algo_meta(meta.name) != meta:
            utils.register_algo_meta(meta)
    return [meta.name for meta in _ours()]


def unregister() -> list[str]:
    """Take our tuners out of NNI's list; the names that were in it."""
    utils = nni_module("nni.tools.package_utils", _FEATURE)
    found = []
    for meta in _ours():
        old = utils.get_algo_meta(meta.name)
        if old is not None and old.class_name == meta.class_name:
            utils.unregister_algo_meta(meta.name)
            found.append(meta.name)
    return found


def registered_in() -> Path:
    """NNI's list, one for each Python environment."""
    path: Path = nni_module("nni.runtime.config", _FEATURE).get_config_file("registered_algorithms.yml")
    return path


@dataclass(frozen=True)
class Checked:
    """An experiment that can be started."""

    first: dict[str, Any]
    """What its tuner would try first: NNI's parameters by label."""
    warnings: list[str]
    """What would mislead, or fail later."""


def check_experiment(path: Path) -> Checked:
    """Whether the experiment of a YAML can be started, and what its tuner would try first.

    Raises:
        DataError: the file is missing or no experiment of NNI. ConfigError: its tuner is none of ours, or not known to
            NNI. NasExtError: whatever the tuner does not take.
    """
    config_class = nni_module("nni.experiment.config", _FEATURE).ExperimentConfig
    if not path.is_file():
        raise DataError(f"no file {path}; give an experiment YAML of NNI")
    try:
        config = config_class.load(path)
        config.validate()
        config = config.canonical_copy()
    except Exception as error:  # NNI raises whatever the first wrong field runs into
        reason = str(error).strip() or "a field that is missing or misplaced"
        raise DataError(f"{path} is no experiment NNI takes ({type(error).__name__}: {reason})") from None
    finally:  # NNI leaves the folder of a file that it did not take as the base of all later paths
        nni_module("nni.experiment.config.utils", _FEATURE).unset_base_path()
    factory = nni_module("nni.tools.package_utils.tuner_factory", _FEATURE)
    settings = {} if config.tuner is None else config.tuner.json()
    try:
        if settings.get("name"):
            tuner = factory.create_builtin_class_instance(settings["name"], settings.get("classArgs"), "tuners")
        elif settings.get("className"):
            tuner = factory.create_customized_class_instance(settings)
        else:
            raise ConfigError(f"{path} names no tuner; give one, such as 'tuner: {{name: RankNAS}}'")
    except (RuntimeError, ImportError, AttributeError) as error:
        raise ConfigError(f"{path}: {error}; 'nas-ext nni register' makes our tuners known to NNI") from None
    from nni_ext.tuner import SearchTuner

    if not isinstance(tuner, SearchTuner):
        raise ConfigError(f"the tuner of {path} is {type(tuner).__name__}, which is none of ours: nothing was checked")
    try:
        tuner.update_search_space(config.search_space)
        first: dict[str, Any] = tuner.generate_parameters(0)
    except NasExtError as error:
        raise type(error)(f"{path}: {error}") from None
    class_args = settings.get("classArgs") or {}
    return Checked(first, experiment_warnings(class_args, tuner.metric, tuner.mode, config))
