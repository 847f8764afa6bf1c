"""Search spaces as dictionaries and YAML files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from nas_core.errors import DataError, SpaceError
from nas_core.files.reading import parse_yaml, read_bytes
from nas_core.files.writing import write_atomic
from nas_core.space.choice import Choice
from nas_core.space.space import SearchSpace

_KEYS = ("name", "choices", "fixed")
_CHOICE_KEYS = ("options", "per", "codes", "scale")


def space_to_dict(space: SearchSpace) -> dict[str, Any]:
    choices: dict[str, Any] = {}
    for choice in space.choices:
        equal_layers = len(set(choice.options)) == 1
        entry: dict[str, Any] = {
            "options": list(choice.options[0]) if equal_layers else [list(row) for row in choice.options]
        }
        if choice.per:
            entry["per"] = choice.per
        if choice.codes:
            entry["codes"] = [[option, code] for option, code in choice.codes]
        if choice.scale:
            entry["scale"] = choice.scale
        choices[choice.name] = entry
    return {"name": space.name, "fixed": dict(space.fixed), "choices": choices}


def space_from_dict(content: Any, source: str = "space") -> SearchSpace:
    """Create a search space from a dictionary.

    Args:
        content: ``choices`` maps gene names to a list of options, or to a mapping with ``options``, ``per`` (gene of
            the number of layers), ``codes`` and ``scale``, as in :class:`Choice`. ``fixed`` maps gene names to
            constants.
    """
    if not isinstance(content, Mapping) or not isinstance(content.get("choices"), Mapping):
        raise SpaceError(f"{source}: expected a mapping with 'choices: {{gene: [options]}}'")
    _check_keys(source, content, _KEYS)
    entries = {name: _entry(source, name, entry) for name, entry in content["choices"].items()}
    choices = []
    for name, entry in entries.items():
        per, scale, layers = entry.get("per"), entry.get("scale", 0.0), 1
        if per is not None:
            depths = entries[per]["options"] if per in entries else []
            if not depths or not all(isinstance(depth, int) for depth in depths):
                raise SpaceError(
                    f"{source}: 'per' of {name!r} is {per!r} with options {depths}; expected an integer gene"
                )
            layers = max(depths)
        codes = dict(entry.get("codes", []))
        if not all(isinstance(number, int | float) for number in (scale, *codes.values())):
            raise SpaceError(f"{source}: {name!r} has scale {scale!r} and codes {codes}; expected numbers")
        choices.append(Choice.make(name, entry["options"], per, layers, codes, float(scale)))
    fixed = content.get("fixed") or {}
    if not isinstance(fixed, Mapping) or not all(isinstance(value, int | float | str) for value in fixed.values()):
        raise SpaceError(f"{source}: 'fixed' is {fixed!r}; expected a mapping of genes to a number or string")
    return SearchSpace(str(content.get("name", source)), choices, fixed)


def _check_keys(location: str, content: Mapping[Any, Any], allowed: tuple[str, ...]) -> None:
    if unknown := [key for key in content if key not in allowed]:
        raise SpaceError(f"{location}: key {unknown[0]!r} is unknown; expected {', '.join(allowed)}")


def _entry(source: str, name: Any, entry: Any) -> Mapping[str, Any]:
    if not isinstance(name, str):
        raise SpaceError(f"{source}: gene {name!r} is not a string; put it in quotes")
    if isinstance(entry, list):
        entry = {"options": entry}
    if not isinstance(entry, Mapping) or not isinstance(entry.get("options"), list):
        raise SpaceError(f"{source}: choice {name!r} is {entry!r}; expected a list, or a mapping with 'options: [..]'")
    _check_keys(f"{source}: choice {name!r}", entry, _CHOICE_KEYS)
    return entry


def load_space(path: str | Path) -> SearchSpace:
    """Read a search space from a YAML file. The default name is the file name without suffix."""
    path = Path(path)
    if not path.exists():
        raise DataError(f"file {path} does not exist; give a YAML file, or a name from 'nas-ext lab space list'")
    try:
        content = parse_yaml(read_bytes(path))
    except ValueError as error:
        raise SpaceError(f"{path}: not readable as YAML ({error})") from None
    if isinstance(content, dict):
        content.setdefault("name", path.stem)
    return space_from_dict(content, str(path))


def save_space(space: SearchSpace, path: str | Path) -> None:
    """Write a search space as YAML."""
    write_atomic(path, yaml.safe_dump(space_to_dict(space), sort_keys=False))
