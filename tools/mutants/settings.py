"""Which files are mutated, which tests have to notice, and how much is enough."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

from nas_core.errors import ConfigError

__all__ = ["ROOT", "Settings", "read_settings"]

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Settings:
    """The table ``[tool.nas-ext.mutants]`` of ``pyproject.toml``."""

    root: Path
    """The checkout that the paths below belong to."""
    files: dict[str, list[str]]
    """Source files, each with the test files (or folders) that are run against its mutants."""
    share: float
    """Least share of the mutants of all files tried that has to be caught."""
    sample: int
    """Most mutants tried of one file; of more, as many are drawn."""
    seed: int
    """What the draws start from; each file draws for itself."""
    beside: list[str]
    """Files and folders of the checkout that tests need beside the sources and ``tests``."""


def read_settings(root: Path = ROOT) -> Settings:
    """The settings of a checkout.

    Raises:
        ConfigError: the table lacks something, a share is none, or a path does not exist.
    """
    content = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    table = content.get("tool", {}).get("nas-ext", {}).get("mutants", {})
    if missing := {"files", "share", "sample", "seed", "beside"} - set(table):
        raise ConfigError(f"[tool.nas-ext.mutants] of {root / 'pyproject.toml'} lacks {', '.join(sorted(missing))}")
    settings = Settings(root, table["files"], table["share"], table["sample"], table["seed"], table["beside"])
    if not (0 < settings.share <= 1 and settings.sample > 0):
        raise ConfigError(
            f"share is {settings.share} and sample {settings.sample}; expected a share up to 1 and a positive number"
        )
    named = [*settings.files, *(test for tests in settings.files.values() for test in tests), *settings.beside]
    if gone := [name for name in named if not (root / name).exists()]:
        raise ConfigError(f"[tool.nas-ext.mutants] names {gone[0]}, which does not exist")
    return settings
