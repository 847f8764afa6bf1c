"""Import of NASLib, a source tree of 2023, with current versions of Python and its libraries.

Missing modules and names are replaced only while :func:`load` or :func:`importable` imports NASLib.
"""

from __future__ import annotations

import collections
import collections.abc
import functools
import importlib.abc
import importlib.machinery
import importlib.util
import inspect
import logging
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from nas_core.errors import MissingHostError
from nas_core.optional import install_line, require
from nas_core.torchvision_fix import repair

NEEDED = ("fvcore.common.checkpoint", "networkx", "sklearn.metrics", "scipy.stats", "PIL.Image", "tqdm", "yaml")
"""Packages that NASLib needs for predictors and search."""
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
"""Module that NASLib imports but does not need for predictors and search -> name for pip."""

_log = logging.getLogger(__name__)


def load(*names: str) -> list[ModuleType]:
    with importable():
        return [require(name, "comparing and searching with NASLib", "naslib") for name in names]


@contextmanager
def importable() -> Iterator[None]:
    """Make NASLib importable inside a ``with`` block."""
    if sys.modules.get("naslib") is None and importlib.util.find_spec("naslib") is None:
        raise MissingHostError(
            f"NASLib was not found; it is used from a source tree, not installed as a package: run"
            f" {install_line('naslib')}"
        )
    if repair():
        _report("torchvision is a CUDA build and torch is not: missing operators of torchvision are declared")
    for name in NEEDED:
        require(name, "NASLib", "naslib")
    missing = {
        name: package
        for name, package in PEERS.items()
        if name not in sys.modules and importlib.util.find_spec(name) is None
    }
    if missing:
        _report(f"packages that are not installed are replaced by empty modules: {', '.join(missing)}")
    with StandIns(missing), _old_collections():
        yield
    _repair_metrics()


@contextmanager
def _old_collections() -> Iterator[None]:
    if hasattr(collections, "Iterable"):
        yield
        return
    _report("collections.Iterable, removed in Python 3.10, is defined during the import")
    collections.Iterable = collections.abc.Iterable  # type: ignore[attr-defined]
    try:
        yield
    finally:
        del collections.Iterable  # type: ignore[attr-defined]


def _repair_metrics() -> None:
    """Give NASLib ``mean_squared_error(squared=False)``, which scikit-learn 1.6 removed."""
    sklearn_metrics = sys.modules.get("sklearn.metrics")
    if sklearn_metrics is None or "squared" in inspect.signature(sklearn_metrics.mean_squared_error).parameters:
        return
    for name, module in list(sys.modules.items()):
        if name.startswith("naslib.") and getattr(module, "metrics", None) is sklearn_metrics:
            module.metrics = _OldMetrics(sklearn_metrics)  # type: ignore[attr-defined]
            _report(f"scikit-learn's mean_squared_error accepts squared= again in module {name}")


class _OldMetrics:
    def __init__(self, metrics: Any) -> None:
        self._metrics = metrics

    def __getattr__(self, name: str) -> Any:
        return getattr(self._metrics, name)

    def mean_squared_error(self, *arguments: Any, squared: bool = True, **options: Any) -> Any:
        function = self._metrics.mean_squared_error if squared else self._metrics.root_mean_squared_error
        return function(*arguments, **options)


@functools.cache
def _report(line: str) -> None:
    _log.info("NASLib compatibility: %s", line)


class StandIns(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Import hook that replaces absent packages by empty modules, inside a ``with`` block.

    Args:
        packages: name of a package in Python -> name for pip.
    """

    def __init__(self, packages: Mapping[str, str]) -> None:
        self.packages = dict(packages)

    def __enter__(self) -> StandIns:
        sys.meta_path.append(self)  # last: installed packages have priority
        return self

    def __exit__(self, *_: object) -> None:
        sys.meta_path.remove(self)
        for name in [name for name, module in sys.modules.items() if isinstance(module, _Module)]:
            del sys.modules[name]

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        if fullname.partition(".")[0] not in self.packages:
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return _Module(spec.name, self.packages[spec.name.partition(".")[0]])

    def exec_module(self, module: ModuleType) -> None:
        pass


class _Module(ModuleType):
    def __init__(self, name: str, package: str) -> None:
        super().__init__(name)
        self.__package = package

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return _class(self.__package, name)


class _Absent(type):
    package: str

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return _class(cls.package, name)


def _class(package: str, name: str) -> type:
    def missing(self: Any, *arguments: Any, **options: Any) -> None:
        raise MissingHostError(f"{name} needs the package {package}, which is not installed: run pip install {package}")

    return _Absent(name, (), {"package": package, "__init__": missing})
