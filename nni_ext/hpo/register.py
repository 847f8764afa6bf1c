"""The tuner in NNI's list of algorithms."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from nas_core.errors import ConfigError
from nni_ext.compat import nni_module

META = Path(__file__).with_name("algorithms.yml")
"""Meta file for ``nnictl algo register --meta``"""

_FEATURE = "registering tuners with NNI"


def _ours() -> list[Any]:
    utils = nni_module("nni.tools.package_utils", _FEATURE)
    version = nni_module("nni", _FEATURE).__version__
    entries = yaml.safe_load(META.read_text(encoding="utf-8"))["algorithms"]
    return [utils.AlgoMeta.load({**entry, "nniVersion": version}) for entry in entries]


def register() -> list[str]:
    """Register the tuner with NNI for ``tuner: {name: nas-ext}`` and return its name."""
    utils = nni_module("nni.tools.package_utils", _FEATURE)
    for meta in _ours():
        old = utils.get_algo_meta(meta.name)
        if old is not None and old.class_name != meta.class_name:
            raise ConfigError(
                f"NNI has {meta.name} as {old.class_name}, ours is {meta.class_name};"
                f" 'nnictl algo unregister {meta.name}' removes the other one"
            )
        if old != meta:
            utils.register_algo_meta(meta)
    return [meta.name for meta in _ours()]


def unregister() -> list[str]:
    """Remove the tuner from NNI's list and return the removed names."""
    utils = nni_module("nni.tools.package_utils", _FEATURE)
    registered = {meta.name: utils.get_algo_meta(meta.name) for meta in _ours()}
    names = [meta.name for meta in _ours() if getattr(registered[meta.name], "class_name", None) == meta.class_name]
    for name in names:
        utils.unregister_algo_meta(name)
    return names


def registered_in() -> Path:
    """Return the file of NNI's list, one for each Python environment."""
    path: Path = nni_module("nni.runtime.config", _FEATURE).get_config_file("registered_algorithms.yml")
    return path
