"""What a quickstart is: a folder with a small real example, a page that explains it, and a script that runs it."""

from __future__ import annotations

import abc
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import ClassVar

from nas_core.errors import ConfigError, DataError
from nas_core.files import os_errors, real_path, write_atomic
from nas_core.optional import require

_UNFINISHED = ".quickstart-unfinished"
"""A file that is in the folder while it is written; with it, the folder is ours and is written anew."""


class Quickstart(abc.ABC):
    """One kind of quickstart. A subclass says the class variables and, in :meth:`data`, what lies beside its script."""

    name: ClassVar[str]
    purpose: ClassVar[str]
    """What a person has at its end, in one line."""
    templates: ClassVar[str]
    """The folder with ``README.md`` and the script, as ``package/folder``."""
    script: ClassVar[str] = "run.py"
    """The name of the script: ``.py`` is run by Python, ``.sh`` by bash."""
    modules: ClassVar[Sequence[str]] = ()
    """Packages that the script imports and that come with ``extra``."""
    extra: ClassVar[str] = ""
    """The extra of its distribution, as in ``pip install 'nas-ext[EXTRA]'``; empty: none is needed."""
    minutes: ClassVar[float] = 1.0
    """How long the script takes on two slow cores, rounded up."""

    @abc.abstractmethod
    def data(self) -> Mapping[str, str | bytes]:
        """What the script reads: a path in the folder -> what the file holds. The same each time."""

    @property
    def command(self) -> str:
        """What is typed in the folder."""
        return f"{'bash' if self.script.endswith('.sh') else 'python'} {self.script}"

    def check(self) -> None:
        """Find out whether what the script imports is here.

        Raises:
            MissingHostError: it is not; the message has the line that installs it.
        """
        for module in self.modules:
            require(module, f"quickstart {self.name!r}", self.extra)

    def pages(self) -> Mapping[str, str]:
        """``README.md`` and the script, by default the files of the folder :attr:`templates`."""
        package, *parts = self.templates.split("/")
        folder = files(package).joinpath(*parts)
        return {name: folder.joinpath(name).read_text(encoding="utf-8") for name in ("README.md", self.script)}

    def contents(self) -> dict[str, str | bytes]:
        """Every file of the folder."""
        return {**self.pages(), **self.data()}

    def write(self, folder: str | Path, force: bool = False) -> list[Path]:
        """Write the folder and return its files.

        Args:
            force: write into a folder that holds something, over files of the same names; others are left alone. So is
                done with a folder whose writing was interrupted.

        Raises:
            MissingHostError: the script could not run here. ConfigError: the folder holds something, or is a file.
            DataError: a file lies outside it. NasExtError: the system refuses; only then may some files be there, and
                the same call writes the others.
        """
        self.check()
        target = Path(folder)
        if target.exists() and not target.is_dir():
            raise ConfigError(f"{target} is a file; give a folder that is new or empty")
        with os_errors("read", target):
            if target.is_dir() and not force and any(target.iterdir()) and not (target / _UNFINISHED).exists():
                raise ConfigError(
                    f"{target} is not empty; give another folder, or --force to write over files of the same names"
                )
        contents = {target / name: content for name, content in self.contents().items()}
        for path in contents:
            if not real_path(path).is_relative_to(real_path(target)):
                raise DataError(f"quickstart {self.name!r} names a file outside its folder: {path}")
        write_atomic(target / _UNFINISHED, "")
        for path, content in contents.items():
            write_atomic(path, content)
        with os_errors("write", target):
            (target / _UNFINISHED).unlink()
        return list(contents)
