"""Installed versions, and which of them do not fit: a part of ``nas-ext doctor``. Nothing is imported."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterator

from packaging.requirements import InvalidRequirement, Requirement

_NOT_NEEDED = "torchaudio"
"""A dependency of fairseq that only its speech tasks import; ``tools/setup.sh`` may remove it."""


def installed_version(*distributions: str) -> str | None:
    """Return the version of the first of these distributions that is installed; None if none is."""
    for name in distributions:
        try:
            return importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return None


def unmet_requirements(package: str) -> list[str]:
    """Return what an installed package (``nas-ext[timm]``) and its direct dependencies require and lack.

    Only the metadata of the packages is read.

    Returns:
        One line for each requirement: who has it, and what is installed instead.
    """
    outer = Requirement(package)
    direct = list(_requirements(outer))
    unmet = []
    for name, requirement in [
        *((outer.name, one) for one in direct),
        *((one.name, inner) for one in direct for inner in _requirements(one)),
    ]:
        version = installed_version(requirement.name)
        if version is not None and not requirement.specifier.contains(version, prereleases=True):
            unmet.append(f"{name} needs {requirement.name}{requirement.specifier}, but {version} is installed")
        elif version is None and requirement.name != _NOT_NEEDED:
            unmet.append(f"{name} needs {requirement.name}{requirement.specifier}, which is not installed")
    return list(dict.fromkeys(unmet))


def _requirements(package: Requirement) -> Iterator[Requirement]:
    """The dependencies of an installed package, with those of its extras; none where it is not installed."""
    try:
        lines = importlib.metadata.requires(package.name) or []
    except importlib.metadata.PackageNotFoundError:
        return
    for line in lines:
        try:
            requirement = Requirement(line)
        except InvalidRequirement:  # as old packages have them
            continue
        marker = requirement.marker
        if marker is None or any(marker.evaluate({"extra": extra}) for extra in package.extras or {""}):
            yield requirement
