"""Import of NNI when it is first used."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from nas_core import startup
from nas_core.errors import MissingHostError
from nas_core.optional import require


def nni_module(module: str, feature: str) -> ModuleType:
    """Import a module of NNI; raise a MissingHostError that names ``feature`` if NNI is not installed."""
    startup.install()  # NNI's NAS part imports torchvision where it finds it
    return require(module, feature, "nni")


def host_class(module: str, name: str, feature: str) -> Any:
    """Return a class of NNI, for use as a base class.

    If NNI is not installed, return a class that raises a MissingHostError when it is instantiated.
    """
    try:
        return getattr(nni_module(module, feature), name)
    except MissingHostError as error:
        message, cause = str(error), error.__cause__

    def raise_missing(*args: object, **kwargs: object) -> None:
        raise MissingHostError(message) from cause

    return type(name, (), {"__new__": raise_missing})
