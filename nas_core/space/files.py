"""Search spaces as plain dictionaries and YAML files."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from nas_core.errors import DataError, SpaceError
from nas_core.files import MOST_OWN_TEXT, parse_yaml, read_bytes, write_atomic
from nas_core.space.choice import Choice
from nas_core.space.space import SearchSpace

_KEYS = {"name", "choices", "fixed"}
_CHOICE_KEYS = {"options", "per", "codes", "scale"}


def space_to_dict(space: SearchSpace) -> dict[str, Any]:
    """The space as JSON-able data; :func:`space_from_dict` gives an equal space back."""
    choices: dict[str, Any] = {}
    for choice in space.choices:
        same = all(row == choice.options[0] for row in choice.options)
        entry: dict[str, Any] = {"options": list(choice.options[0]) if same else [list(row) for row in choice.options]}
        if choice.per:
            entry["per"] = choice.per
        if choice.codes:
            entry["codes"] = [[option, code] for option, code in choice.codes]
        if choice.scale:
            entry["scale"] = choice.scale
        choices[choice.name] = entry
    return {"name": space.name, "fixed": dict(space.fixed), "choices": choices}


def space_from_dict(content: Any, source: str = "space") -> SearchSpace:
    """A space from a dictionary: ``choices`` maps gene names to a list of options, or to a mapping with ``options``
    (a list, or one list per layer), ``per`` (the depth gene), ``codes`` and ``scale``; ``fixed`` maps gene names to
    the one value they have.

    Raises:
        SpaceError: a key that is not known, a depth gene that is missing, no options.
    """
    if not isinstance(content, Mapping) or not isinstance(content.get("choices"), Mapping):
        raise SpaceError(f"{source}: expected a mapping with 'choices: {{gene: [options]}}'")
    unknown = sorted(set(content) - _KEYS, key=str)
    if unknown:
        raise SpaceError(f"{source}: key {unknown[0]!r} is not known; a space has {', '.join(sorted(_KEYS))}")
    entries = {name: _entry(source, name, entry) for name, entry in content["choices"].items()}
    choices = []
    for name, entry in entries.items():
        per = entry.get("per")
        if per is not None and (not isinstance(per, str) or per not in entries):
            raise SpaceError(f"{source}: {name!r} is repeated by {per!r}, which is no choice of this space; add it")
        layers = _deepest(source, str(per), entries[per]["options"]) if per is not None else 1
        codes, scale = _codes(source, name, entry.get("codes", [])), entry.get("scale", 0.0)
        if not _is_number(scale):
            raise SpaceError(f"{source}: {name!r} has scale {scale!r}; expected a number")
        choices.append(Choice.make(name, entry["options"], per, layers, codes, float(scale)))
    fixed = content.get("fixed") or {}
    if not isinstance(fixed, Mapping) or not all(
        isinstance(name, str) and (isinstance(value, str) or _is_number(value)) for name, value in fixed.items()
    ):
        raise SpaceError(f"{source}: 'fixed' is {fixed!r}; expected a mapping of genes to one number or name each")
    return SearchSpace(str(content.get("name", source)), choices, fixed)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


def _codes(source: str, name: str, pairs: Any) -> dict[Any, float]:
    pairs = list(pairs.items()) if isinstance(pairs, Mapping) else pairs
    codes = {}
    for pair in pairs if isinstance(pairs, list) else [pairs]:
        good = isinstance(pair, list | tuple) and len(pair) == 2 and isinstance(pair[0], int | float | str)
        if not good or not _is_number(pair[1]):
            raise SpaceError(f"{source}: {name!r} has codes {pairs!r}; expected a list of [option, number] pairs")
        codes[pair[0]] = float(pair[1])
    return codes


def _entry(source: str, name: Any, entry: Any) -> dict[str, Any]:
    if not isinstance(name, str):
        raise SpaceError(f"{source}: gene {name!r} is no name; put it in quotes")
    if isinstance(entry, list):
        entry = {"options": entry}
    if not isinstance(entry, Mapping) or not isinstance(entry.get("options"), list):
        raise SpaceError(f"{source}: choice {name!r} is {entry!r}; expected a list, or a mapping with 'options: [..]'")
    unknown = sorted(set(entry) - _CHOICE_KEYS, key=str)
    if unknown:
        raise SpaceError(f"{source}: {name!r} has key {unknown[0]!r}; expected {', '.join(sorted(_CHOICE_KEYS))}")
    return dict(entry)


def _deepest(source: str, name: str, options: list[Any]) -> int:
    depths = [option for option in options if isinstance(option, int)]
    if not depths or len(depths) < len(options):
        raise SpaceError(f"{source}: depth gene {name!r} has options {options}; expected layer counts")
    return max(depths)


def _content(path: Path) -> bytes:
    if not path.exists():
        raise DataError(f"no file {path}; give a space in YAML, or a name from 'nas-ext lab space list'")
    return read_bytes(path)


def load_space(path: str | Path) -> SearchSpace:
    """A space from a YAML file; its name is the file's stem unless the file gives one."""
    path = Path(path)
    try:
        content = parse_yaml(_content(path), MOST_OWN_TEXT)
    except ValueError as error:
        raise SpaceError(f"{path}: not readable as YAML ({error})") from None
    if isinstance(content, dict):
        content.setdefault("name", path.stem)
    return space_from_dict(content, str(path))


def save_space(space: SearchSpace, path: str | Path) -> None:
    """Write a space as YAML that :func:`load_space` reads."""
    write_atomic(path, yaml.safe_dump(space_to_dict(space), sort_keys=False))
