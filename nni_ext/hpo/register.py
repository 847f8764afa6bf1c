"""Our tuner in NNI's list of algorithms, and experiments checked before they start."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from nas_core.errors import ConfigError, DataError, NasExtError
from nni_ext.compat import nni_module
from nni_ext.hpo.advice import experiment_warnings

if TYPE_CHECKING:
    from nni_ext.hpo.tuner import SearchTuner

META = Path(__file__).with_name("algorithms.yml")
"""What ``nnictl algo register --meta`` takes."""

_FEATURE = "registering tuners with NNI"


def _ours() -> list[Any]:
    utils = nni_module("nni.tools.package_utils", _FEATURE)
    version = nni_module("nni", _FEATURE).__version__
    entries = yaml.safe_load(META.read_text(encoding="utf-8"))["algorithms"]
    return [utils.AlgoMeta.load({**entry, "nniVersion": version}) for entry in entries]


def register() -> list[str]:
    """Put our tuner into NNI's list, so that YAMLs can say ``tuner: {name: nas-ext}``; its name. Again is a no-op.

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
    """Take our tuner out of NNI's list; the names that were in it."""
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


def check_experiment(path: Path, import_code: bool = False) -> Checked:
    """Whether the experiment of a YAML can be started, and what its tuner would try first. Our tuners come from this
    package, whatever the YAML's ``codeDirectory`` is; a class of other code is not imported, as that would run it.

    Args:
        import_code: import it all the same, for tuners derived from ours.

    Raises:
        DataError: the file is missing or no experiment of NNI. ConfigError: its tuner is none of ours, not known to
            NNI, or would have to be imported. NasExtError: whatever the tuner does not take.
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
    settings = {} if config.tuner is None else config.tuner.json()
    tuner = made_tuner(path, settings, import_code)
    try:
        tuner.update_search_space(config.search_space)
        first: dict[str, Any] = tuner.generate_parameters(0)
    except NasExtError as error:
        raise type(error)(f"{path}: {error}", command_line=f"{path}: {error.command_line}") from None
    return Checked(first, experiment_warnings(settings.get("classArgs") or {}, tuner.metric, tuner.mode, config))


def made_tuner(path: Path, settings: Mapping[str, Any], import_code: bool) -> SearchTuner:
    """The tuner of a YAML's ``tuner``, with its arguments."""
    from nni_ext.hpo.tuner import SearchTuner

    name, given = settings.get("name"), settings.get("className")
    if not name and not given:
        raise ConfigError(f"{path} names no tuner; give one, such as 'tuner: {{name: nas-ext}}'")
    wanted = _known_class(path, name) if name else given
    arguments = settings.get("classArgs") or {}
    if not isinstance(arguments, Mapping) or not all(isinstance(key, str) for key in arguments):
        raise ConfigError(f"{path}: classArgs are {arguments!r}; expected names and values, such as 'seed: 1'")
    if wanted == f"{SearchTuner.__module__}.{SearchTuner.__name__}":
        try:
            tuner = SearchTuner(**arguments)
        except NasExtError as error:
            raise type(error)(f"{path}: {error}", command_line=f"{path}: {error.command_line}") from None
    elif name:
        raise ConfigError(f"the tuner of {path} is {wanted}, which is none of ours: nothing was checked")
    elif not import_code:
        raise ConfigError(
            f"the tuner of {path} is {wanted} in {settings.get('codeDirectory')}, and a check does not run code of an"
            " experiment; if you trust it, --import-code imports it"
        )
    else:
        factory = nni_module("nni.tools.package_utils.tuner_factory", _FEATURE)
        try:
            tuner = factory.create_customized_class_instance(settings)
        except NasExtError:
            raise
        except Exception as error:  # of code that is not ours
            raise ConfigError(f"{path}: {wanted} cannot be made ({type(error).__name__}: {error})") from None
    if not isinstance(tuner, SearchTuner):
        raise ConfigError(f"the tuner of {path} is {type(tuner).__name__}, which is none of ours: nothing was checked")
    return tuner


def _known_class(path: Path, name: str) -> str:
    """What NNI takes for that name."""
    meta = nni_module("nni.tools.package_utils", _FEATURE).get_algo_meta(name)
    if meta is None:
        raise ConfigError(f"{path}: NNI knows no tuner {name}; 'nas-ext nni register' makes ours known to it")
    return str(meta.class_name)
