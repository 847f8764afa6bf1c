"""griffe extension for the site's docstrings: replaces roles by links, and double backticks by single ones.

A role becomes a link if the site has its name, and plain text otherwise. ``mkdocs.yml`` enables the extension.
"""

from __future__ import annotations

import re
from html import escape
from typing import Any

import griffe

_ROLE = re.compile(r":(?:py:)?(?:mod|class|func|meth|attr|data|exc|obj):`(?P<short>~)?(?P<name>[^`]+)`")


class Roles(griffe.Extension):
    """Rewrite the docstrings of a package."""

    def on_package(self, *, pkg: griffe.Module, **kwargs: Any) -> None:
        self._visit(pkg)

    def _visit(self, owner: Any) -> None:
        if owner.docstring is not None:
            owner.docstring.value = as_markdown(owner.docstring.value, owner)
        for member in owner.members.values():
            if not member.is_alias:
                self._visit(member)


def as_markdown(text: str, scope: Any) -> str:
    """Return a docstring as Markdown; names are resolved in ``scope``."""

    def link(match: re.Match[str]) -> str:
        name = match["name"]
        label = escape(name.rpartition(".")[2] if match["short"] else name)
        return f'<autoref optional identifier="{escape(_resolve(name, scope))}"><code>{label}</code></autoref>'

    return re.sub(r"``([^`]+)``", r"`\1`", _ROLE.sub(link, text))


def _resolve(name: str, scope: Any) -> str:
    first, dot, rest = name.partition(".")
    owner = scope if scope.is_class else scope.parent
    if owner is not None and owner.is_class and first in owner.all_members:
        return f"{owner.all_members[first].path}{dot}{rest}"
    try:
        return f"{scope.resolve(first)}{dot}{rest}"
    except griffe.NameResolutionError:
        return name
