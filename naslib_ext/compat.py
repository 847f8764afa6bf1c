"""Lets a NASLib source tree be imported with today's Python and libraries.

NASLib (last changed in 2023) is made for Python 3.7 to 3.9 and imports every predictor's package as soon as one of its
own is imported. Here it is imported as it is; what is missing is there during that import only, and nothing outside
NASLib is changed for good. Nothing happens until :func:`load` or :func:`importable` is called.
"""

from __future__ import annotations

import collections
import collections.abc
import importlib.util
import inspect
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from nas_core.errors import DataError, MissingHostError
from nas_core.files import real_path
from nas_core.optional import install_line, require
from nas_core.torchvision_fix import repair
from naslib_ext.stand_ins import StandIns

NEEDED = ("fvcore.common.checkpoint", "networkx", "sklearn.metrics", "scipy.stats", "PIL.Image", "tqdm", "yaml")
"""What NASLib really uses for predictors and search, and this plug-in cannot stand in for."""
PEERS = {
    "ConfigSpace": "ConfigSpace",
    "emcee": "emcee",
    "grakel": "grakel",
    "lightgbm": "lightgbm",
    "matplotlib": "matplotlib",
    "nasbench_pytorch": "nasbench-pytorch",
    "ngboost": "ngboost",
    "pybnn": "pybnn",
    "pyro": "pyro-ppl",
    "pytorch_msssim": "pytorch-msssim",
    "seaborn": "seaborn",
    "six": "six",
    "skimage": "scikit-image",
    "tensorwatch": "tensorwatch",
    "torchvision": "torchvision",
    "transforms3d": "transforms3d",
    "xgboost": "xgboost",
}
"""What NASLib imports beside (other predictors, image data, networks to be trained), and what pip calls it."""

_log = logging.getLogger(__name__)
_done: list[str] = []


def use(folder: str | Path) -> None:
    """Take NASLib from a source tree, as ``PYTHONPATH`` would.

    Raises:
        DataError: the folder holds no NASLib.
    """
    path = real_path(folder)
    if not (path / "naslib" / "predictors").is_dir():
        raise DataError(f"{folder} holds no NASLib; give the folder of a checkout, with a folder naslib in it")
    if str(path) not in sys.path:
        sys.path.insert(0, str(path))


def load(*names: str) -> list[ModuleType]:
    """Import modules of NASLib.

    Raises:
        MissingHostError: there is no NASLib, or it does not import all the same.
    """
    with importable():
        return [require(name, "comparing and searching with NASLib", "naslib") for name in names]


@contextmanager
def importable() -> Iterator[None]:
    """In this block, modules of NASLib can be imported.

    Raises:
        MissingHostError: there is no NASLib, or a package that it cannot do without.
    """
    if sys.modules.get("naslib") is None and importlib.util.find_spec("naslib") is None:
        raise MissingHostError(
            f"NASLib was not found: it is no package to install but a source tree; run {install_line('naslib')}"
        )
    if repair():
        _report("torchvision is a CUDA build beside a CPU torch: its operators are declared")
    for name in NEEDED:
        require(name, "NASLib", "naslib")
    absent = {
        name: package
        for name, package in PEERS.items()
        if name not in sys.modules and importlib.util.find_spec(name) is None
    }
    if absent:
        _report(f"stand-ins, while NASLib is imported, for packages that are not installed: {', '.join(absent)}")
    with StandIns(absent), _old_collections():
        yield
    _repair_metrics()


def repairs() -> tuple[str, ...]:
    """What was done so far, one line each."""
    return tuple(_done)


@contextmanager
def _old_collections() -> Iterator[None]:
    """``from collections import Iterable`` ended with Python 3.10."""
    if hasattr(collections, "Iterable"):
        yield
        return
    _report("collections.Iterable exists again while NASLib is imported")
    collections.Iterable = collections.abc.Iterable  # type: ignore[attr-defined]
    try:
        yield
    finally:
        del collections.Iterable  # type: ignore[attr-defined]


def _repair_metrics() -> None:
    """``mean_squared_error(squared=False)`` ended with scikit-learn 1.6; NASLib then gives NaN for all its metrics."""
    real = sys.modules.get("sklearn.metrics")
    if real is None or "squared" in inspect.signature(real.mean_squared_error).parameters:
        return
    for name, module in list(sys.modules.items()):
        if name.startswith("naslib.") and getattr(module, "metrics", None) is real:
            module.metrics = _OldMetrics(real)  # type: ignore[attr-defined]
            _report(f"mean_squared_error of scikit-learn takes squared= again, in {name}")


class _OldMetrics:
    """``sklearn.metrics`` with the root of the squared error as it was asked for before 1.6."""

    def __init__(self, real: Any) -> None:
        self._real = real

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def mean_squared_error(self, *arguments: Any, squared: bool = True, **options: Any) -> Any:
        function = self._real.mean_squared_error if squared else self._real.root_mean_squared_error
        return function(*arguments, **options)


def _report(line: str) -> None:
    if line not in _done:
        _done.append(line)
        _log.info("for NASLib: %s", line)
