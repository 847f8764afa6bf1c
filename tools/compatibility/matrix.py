"""What is tried, and what ``pyproject.toml`` asks for."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

__all__ = [
    "CORE", "EXTRAS", "HOSTS", "PLATFORMS", "PYTHONS", "SOURCE_ONLY", "Combination", "combinations", "project",
    "requirements", "wheels_of",
]  # fmt: skip

ROOT = Path(__file__).resolve().parents[2]
CORE = "core"
"""No extra."""
EXTRAS = (
    CORE, "timm", "nni", "onnx", "optuna", "dashboard", "submitit", "naslib", "cuda", "fairseq",
)  # fmt: skip
HOSTS = {"timm": "timm", "nni": "nni", "onnx": "onnx", "optuna": "optuna", "dashboard": "optuna", "fairseq": "fairseq"}
"""The host that ``nas-ext doctor`` finds in an environment of that extra alone, and no other."""
SOURCE_ONLY = {"fairseq": ("fairseq-fixed",), "naslib": ("fvcore", "iopath")}
"""What the extras bring that the registry has no wheel of."""
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
PLATFORMS = {
    "Linux, x86-64": "x86_64-manylinux_2_28",
    "Linux, ARM": "aarch64-manylinux_2_28",
    "macOS, Apple silicon": "aarch64-apple-darwin",
    "Windows, x86-64": "x86_64-pc-windows-msvc",
}


class Combination(NamedTuple):
    """One environment to try."""

    extra: str
    python: str
    versions: str
    """Which versions of what the project depends on are installed: newest or lowest."""
    source: str = "wheel"
    """What is installed: wheel or sdist."""
    installer: str = "uv"


def combinations(pythons: Sequence[str] = PYTHONS, extras: Sequence[str] = EXTRAS) -> list[Combination]:
    """Every environment to try.

    All extras with the newest and the lowest versions on the first Python; on the others what the core needs in both,
    and all extras but fairseq, which is known to work on Python 3.11 only, in their newest.
    """
    first, *others = PYTHONS
    found = [Combination(extra, first, versions) for versions in ("newest", "lowest") for extra in EXTRAS]
    found += [Combination(CORE, first, "newest", "sdist"), Combination(CORE, first, "newest", "wheel", "pip")]
    for python in others:
        found += [Combination(extra, python, "newest") for extra in EXTRAS if extra != "fairseq"]
        found += [Combination(CORE, python, "lowest")]
    return [one for one in found if one.python in pythons and one.extra in extras]


def project(root: Path = ROOT) -> dict[str, object]:
    """The table ``project`` of ``pyproject.toml``."""
    return dict(tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"])


def requirements(settings: dict[str, object], extra: str) -> list[str]:
    """What the core and an extra depend on directly; extras that name extras are followed."""
    extras = settings["optional-dependencies"]
    assert isinstance(extras, dict) and isinstance(settings["dependencies"], list)
    found = [*settings["dependencies"]]
    for one in [] if extra == CORE else extras[extra]:
        own = re.fullmatch(r"nas-ext\[(.*)\]", one)
        for name in own[1].split(",") if own else ():
            found += requirements({**settings, "dependencies": []}, name)
        if not own:
            found.append(one)
    return found


def wheels_of(settings: dict[str, object], extra: str) -> list[str]:
    """What the core and an extra depend on directly, but for what is source only."""
    return [one for one in requirements(settings, extra) if not one.startswith(SOURCE_ONLY.get(extra, ("nothing",)))]
