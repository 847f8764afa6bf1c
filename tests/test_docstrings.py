"""Docstrings are sentences: the first line says what the thing is or does (rule 15 of the house)."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = ("nas_core", "fairseq_ext", "timm_ext", "nni_ext", "naslib_ext", "optuna_ext", "examples", "benchmarks")
FILES = sorted(file for folder in FOLDERS for file in (ROOT / folder).rglob("*.py"))
FRAGMENTS = ("Of ", "As ", "See ", "Raises:", "Args:", "Returns:")
"""Beginnings that lean on a name or a signature instead of saying something."""


def docstrings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Every docstring of a module, its classes, functions and attributes, with its line."""
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if not isinstance(body, list):
            continue
        documented = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        before = [node if documented else None, *body]
        for owner, statement in zip(before, body, strict=False):
            if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
                text = statement.value.value
                if isinstance(text, str) and (owner is node or isinstance(owner, ast.Assign | ast.AnnAssign)):
                    yield statement.lineno, text


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_first_lines_are_sentences(file: Path):
    found = docstrings(ast.parse(file.read_text(encoding="utf-8")))
    wrong = {line: text.splitlines()[:1] for line, text in found if text.startswith(FRAGMENTS) or not text.strip()}
    assert not wrong


def test_every_public_thing_of_the_core_says_what_it_is():
    silent = []
    for file in (ROOT / "nas_core").rglob("*.py"):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        if not ast.get_docstring(tree) and tree.body:
            silent.append(str(file.relative_to(ROOT)))
        public = _public(tree)
        silent += [
            f"{file.relative_to(ROOT)}: {node.name}"
            for node in tree.body
            if isinstance(node, ast.ClassDef | ast.FunctionDef)
            and node.name in public
            and not ast.get_docstring(node)
            and not any(ast.unparse(one) == "overload" for one in node.decorator_list)
        ]
    assert not silent


def test_every_module_of_the_core_says_what_is_public():
    silent = []
    for file in (ROOT / "nas_core").rglob("*.py"):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        defines = any(isinstance(node, ast.ClassDef | ast.FunctionDef) for node in tree.body)
        if defines and not any("__all__" in ast.unparse(node) for node in tree.body if isinstance(node, ast.Assign)):
            silent.append(str(file.relative_to(ROOT)))
    assert not silent


def _public(tree: ast.Module) -> set[str]:
    """The names in ``__all__``."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return set(ast.literal_eval(node.value))
    return set()
