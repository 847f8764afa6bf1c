"""Registration of the tuner in NNI's list of algorithms."""

from __future__ import annotations

from pathlib import Path

import yaml

from nas_core.errors import ConfigError
from nni_ext.compat import nni_module

META = Path(__file__).with_name("algorithms.yml")
"""Meta file for ``nnictl algo register --meta``"""

_FEATURE = "registering tuners with NNI"


def register() -> str:
    """Register the tuner with NNI for ``tuner: {name: nas-ext}`` and return its name."""
    utils = nni_module("nni.tools.package_utils", _FEATURE)
    (entry,) = yaml.safe_load(META.read_text(encoding="utf-8"))["algorithms"]
    meta = utils.AlgoMeta.load({**entry, "nniVersion": nni_module("nni", _FEATURE).__version__})
    registered = utils.get_algo_meta(meta.name)
    if registered is not None and registered.class_name != meta.class_name:
        raise ConfigError(
            f"the name {meta.name} is registered with NNI for {registered.class_name}, not for {meta.class_name};"
            f" remove it with 'nnictl algo unregister {meta.name}'"
        )
    if registered != meta:
        utils.register_algo_meta(meta)
    return str(meta.name)
