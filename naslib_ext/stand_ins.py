"""Empty modules in place of packages that are imported but not used."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
from collections.abc import Mapping
from types import ModuleType, TracebackType
from typing import Any

from nas_core.errors import MissingHostError


class StandIns(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """While the block lasts, these packages can be imported: any attribute is a class that cannot be instantiated.

    Afterwards they are absent again. What was imported inside keeps its reference, and says on use which package is
    missing.
    """

    def __init__(self, packages: Mapping[str, str]) -> None:
        """``packages``: names to import, and what pip calls them."""
        self.packages = dict(packages)

    def __enter__(self) -> StandIns:
        sys.meta_path.append(self)  # last: what is installed comes first
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
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
        """There is nothing in it."""


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
