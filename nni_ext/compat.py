"""NNI's classes as bases of ours, where NNI is installed and where it is not."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from nas_core import startup
from nas_core.errors import MissingHostError
from nas_core.optional import require


def nni_module(module: str, feature: str) -> ModuleType:
    """A module of NNI, imported now.

    Raises:
        MissingHostError: NNI, or something it needs, is absent or does not import.
    """
    startup.install()  # NNI's NAS part imports torchvision where it finds it
    return require(module, feature, "nni")


def host_class(module: str, name: str, feature: str) -> Any:
    """A class of NNI to derive from; where NNI is absent, one whose every instantiation says how to get NNI.

    So a module of ours imports without NNI, and a MissingHostError comes when ``feature`` is used.
    """
    try:
        return getattr(nni_module(module, feature), name)
    except MissingHostError as error:
        message, cause = str(error), error.__cause__

    def absent(*args: object, **kwargs: object) -> None:
        raise MissingHostError(message) from cause

    return type(name, (), {"__new__": absent})
