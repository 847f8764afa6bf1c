"""Import of the public names of a package on first access."""

from __future__ import annotations

import ast
import importlib
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any


def lazy_names(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` of a package, to import its names on first access.

    The names are those that its ``__init__.py`` imports under ``if TYPE_CHECKING:``. They must differ from the names of
    its modules.
    """
    module = sys.modules[package]

    @cache
    def homes() -> dict[str, str]:
        tree = ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))
        blocks = [node.body for node in tree.body if isinstance(node, ast.If)]
        imports = [node for body in blocks for node in body if isinstance(node, ast.ImportFrom)]
        return {alias.name: str(node.module) for node in imports for alias in node.names}

    def get(name: str) -> Any:
        if name.startswith("_") or name not in homes():
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(importlib.import_module(homes()[name]), name)

    return get, lambda: sorted({*vars(module), *homes()})
