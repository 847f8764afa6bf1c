"""YAML from anybody: plain values alone, counted before they are made."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from nas_core.errors import DataError
from nas_core.files.reading import DIGITS, read_bytes

MOST_TEXT = 400_000
"""Bytes of a text; its reader is slow."""
MOST_OWN_TEXT = 2**24
"""Bytes of a text that this package writes itself: settings of a run, a space with thousands of options."""
MOST_VALUES = 2**20
"""Values and keys, where a repeated part counts as often as it is repeated."""

_NUMBERS = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")


def parse_yaml(text: bytes | str, most: int = MOST_TEXT) -> Any:
    """The value of a YAML text: mappings, lists, texts, numbers, dates.

    Args:
        most: bytes that it may have.

    Raises:
        ValueError: it is none, asks for other objects, or is larger than reason once its aliases are followed.
    """
    content = text.encode("utf-8") if isinstance(text, str) else text
    if len(content) > most:
        raise ValueError(f"more than {most // 1000} kB of text")
    loader = None
    try:
        loader = yaml.SafeLoader(content.decode("utf-8"))
        node = loader.get_single_node()
        if node is None:
            return None
        _count(node, {})
        value = loader.construct_document(node)
        _encode(value, set())
    except RecursionError:
        raise ValueError("nested too deep") from None
    except UnicodeEncodeError:
        raise ValueError("a text with half a character, a lone surrogate") from None
    except (yaml.YAMLError, ValueError, TypeError, AttributeError, LookupError, ArithmeticError) as error:
        raise ValueError(" ".join(str(error).split())) from None
    finally:
        if loader is not None:
            loader.dispose()
    return value


def read_yaml(path: str | Path, most: int = MOST_TEXT) -> Any:
    """The value in a YAML file.

    Args:
        most: bytes that it may have.

    Raises:
        DataError: the file is missing or is not YAML that `parse_yaml` takes.
        NasExtError: it cannot be read.
    """
    content = read_bytes(path)
    try:
        return parse_yaml(content, most)
    except ValueError as error:
        raise DataError(f"{path}: not readable as YAML ({error})") from error


def _count(node: yaml.Node, known: dict[int, int]) -> int:
    """How many values a node gives, each part that is repeated by an alias anew.

    Raises:
        ValueError: too many, a part of itself, or a number of too many digits.
    """
    if id(node) in known:
        if not (found := known[id(node)]):
            raise ValueError("a value that is a part of itself")
        return found
    known[id(node)] = 0
    total = 1
    if isinstance(node, yaml.MappingNode):
        total += sum(_count(part, known) for pair in node.value for part in pair)
    elif isinstance(node, yaml.SequenceNode):
        total += sum(_count(part, known) for part in node.value)
    elif node.tag in _NUMBERS and len(node.value) > DIGITS:
        raise ValueError(f"a number of {len(node.value)} digits, which is too large")
    if total > MOST_VALUES:
        raise ValueError(f"more than {MOST_VALUES} values once its aliases are followed")
    known[id(node)] = total
    return total


def _encode(value: Any, known: set[int]) -> None:
    """Insist that all texts can be written."""
    if isinstance(value, str):
        value.encode("utf-8")
    elif isinstance(value, dict | list | tuple | set) and id(value) not in known:
        known.add(id(value))
        for part in value:
            _encode(part, known)
        for part in value.values() if isinstance(value, dict) else ():
            _encode(part, known)
