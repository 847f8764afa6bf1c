"""Small runnable examples that ``nas-ext quickstart`` writes to a folder."""

from __future__ import annotations

import abc
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import ClassVar

from nas_core.adapters import adapter_members
from nas_core.errors import ConfigError, DataError
from nas_core.files.reading import real_path
from nas_core.files.writing import os_errors, write_atomic
from nas_core.optional import require
from nas_core.registry import Registry

__all__ = ["QUICKSTARTS", "Quickstart"]

_UNFINISHED = ".quickstart-unfinished"


class Quickstart(abc.ABC):
    """Folder with data, a README and a script.

    A subclass sets the class variables and implements :meth:`data`.
    """

    name: ClassVar[str]
    purpose: ClassVar[str]
    """One-line description of the script."""
    templates: ClassVar[str]
    """Folder of ``README.md`` and the script, as ``package/folder``."""
    script: ClassVar[str] = "run.py"
    """File name of the script; ``.py`` runs with Python, ``.sh`` with bash."""
    modules: ClassVar[Sequence[str]] = ()
    """Modules that the script needs."""
    extra: ClassVar[str] = ""
    """Extra of nas-ext that installs these modules; empty if none is needed."""
    minutes: ClassVar[float] = 1.0
    """Run time of the script in minutes, on two slow cores."""

    @abc.abstractmethod
    def data(self) -> Mapping[str, str | bytes]:
        """Return relative path -> content of the script's input files; equal in each call."""

    @property
    def command(self) -> str:
        """Shell command that runs the script."""
        return f"{'bash' if self.script.endswith('.sh') else 'python'} {self.script}"

    def check(self) -> None:
        """Raise a MissingHostError if a module of the script is missing."""
        for module in self.modules:
            require(module, f"quickstart {self.name!r}", self.extra)

    def pages(self) -> Mapping[str, str]:
        """Return file name -> text of ``README.md`` and the script."""
        package, *folders = self.templates.split("/")
        folder = files(package).joinpath(*folders)
        return {name: folder.joinpath(name).read_text(encoding="utf-8") for name in ("README.md", self.script)}

    def contents(self) -> dict[str, str | bytes]:
        return {**self.pages(), **self.data()}

    def write(self, folder: str | Path, force: bool = False) -> list[Path]:
        """Write the folder and return the paths of its files.

        Args:
            force: also write into a folder that is not empty; files with other names are kept.

        Raises:
            MissingHostError: a module of the script is missing.
            ConfigError: the path is a file or a folder that is not empty.
        """
        self.check()
        target = Path(folder)
        if target.exists() and not target.is_dir():
            raise ConfigError(f"{target} is a file; give a new or empty folder")
        with os_errors("read", target):
            if target.is_dir() and not force and any(target.iterdir()) and not (target / _UNFINISHED).exists():
                raise ConfigError(
                    f"{target} is not empty; give another folder, or --force to overwrite files with the same names"
                )
        contents = {target / name: content for name, content in self.contents().items()}
        for path in contents:
            if not real_path(path).is_relative_to(real_path(target)):
                raise DataError(f"quickstart {self.name!r} has a file outside its folder: {path}; use relative paths")
        write_atomic(target / _UNFINISHED, "")
        for path, content in contents.items():
            write_atomic(path, content)
        with os_errors("write", target):
            (target / _UNFINISHED).unlink()
        return list(contents)


class _Latency(Quickstart):
    name = "latency"
    purpose = "predict how long an ONNX file takes, with a model of networks measured on your machine"
    templates = "nas_core/quickstart/templates/latency"
    script = "run.sh"
    modules = ("onnx", "onnxruntime", "onnxscript")
    extra = "onnx"

    def data(self) -> Mapping[str, str | bytes]:
        return {}


class _Predictor(Quickstart):
    # tools/quickstart_cells.py writes cells.jsonl
    name = "predictor"
    purpose = "rank untrained networks by accuracy, learned from networks that were trained"
    templates = "nas_core/quickstart/templates/predictor"

    def data(self) -> Mapping[str, str | bytes]:
        cells = files("nas_core").joinpath("quickstart", "templates", "predictor", "cells.jsonl")
        return {"cells.jsonl": cells.read_bytes()}


PREDICTOR, LATENCY = _Predictor(), _Latency()


QUICKSTARTS: Registry[Quickstart] = Registry(
    "quickstart",
    "",
    {"predictor": "nas_core.quickstart:PREDICTOR", "latency": "nas_core.quickstart:LATENCY"},
    Quickstart,
    offered=lambda: adapter_members("quickstarts"),
)
