"""Imports of optional packages."""

from __future__ import annotations

import importlib
from types import ModuleType

from nas_core.errors import MissingHostError

# Extras for which `pip install 'nas-ext[EXTRA]'` is not enough.
_INSTALL_LINES = {
    # Source only: it compiles against the torch already installed, which an isolated build would not see.
    "fairseq": (
        "pip install 'setuptools<81' wheel cython numpy && pip install --no-build-isolation 'nas-ext[fairseq]'"
    ),
    # Not published as a package; the extra has what it imports.
    "naslib": (
        "pip install 'nas-ext[naslib]' && git clone https://github.com/automl/NASLib"
        ' && export PYTHONPATH="$PWD/NASLib:$PYTHONPATH"'
    ),
}


def install_line(extra: str) -> str:
    return _INSTALL_LINES.get(extra, f"pip install 'nas-ext[{extra}]'")


def require(module: str, feature: str, extra: str) -> ModuleType:
    """Import an optional module, or raise a MissingHostError with the command that installs it.

    Args:
        feature: what needs the module, for the error message, such as "exporting to ONNX".
        extra: extra of the package ``nas-ext`` that installs the module.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        missing_package = (error.name or module).partition(".")[0]
        if missing_package == module.partition(".")[0] and error.name != missing_package:
            missing = f"{error.name or module}, which this version of {missing_package} does not have"
        else:
            missing = f"the package {missing_package}, which is not installed"
        raise MissingHostError(f"{feature} needs {missing}: run {install_line(extra)}") from error
    except Exception as error:  # some hosts fail on import with whatever their first incompatible line raises
        raise MissingHostError(
            f"{feature} needs the package {module.partition('.')[0]}, which is installed but cannot be imported "
            f"({type(error).__name__}: {error}): install a supported version, {install_line(extra)}"
        ) from error
