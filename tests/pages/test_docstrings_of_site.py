"""Docstrings on the site: roles are links that never fail, and backticks are Markdown's."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

griffe = pytest.importorskip("griffe", reason="needs the extra docs")


@cache
def method() -> Any:
    return griffe.GriffeLoader(search_paths=["."]).load("nas_core.registry")["Registry.register"]


def shown(text: str) -> str:
    from tools.docstrings import as_markdown

    return as_markdown(text, method())


def test_names_are_found_as_code_and_readers_find_them() -> None:
    link = '<autoref optional identifier="{}"><code>{}</code></autoref>'
    errors = "nas_core.errors"
    for text, target, name in (
        (":class:`~nas_core.errors.ConfigError`", f"{errors}.ConfigError", "ConfigError"),
        (":class:`ConfigError`", f"{errors}.ConfigError", "ConfigError"),
        (":meth:`unregister`", "nas_core.registry.Registry.unregister", "unregister"),
        (":func:`first_line`", "nas_core.registry.first_line", "first_line"),
        (":func:`nowhere.to_be<found`", "nowhere.to_be&lt;found", "nowhere.to_be&lt;found"),
    ):
        assert shown(f"See {text}.") == f"See {link.format(target, name)}."


def test_double_backticks_become_single_ones() -> None:
    assert shown("``a`` and ``b``: `c`") == "`a` and `b`: `c`"
