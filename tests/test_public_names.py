"""What users copy (README, documentation, examples) imports public names alone, each from its package."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from tests.toys import ROOT

PACKAGES = ("nas_core", "fairseq_ext", "timm_ext", "nni_ext", "naslib_ext", "optuna_ext")
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
PROGRAMS = sorted((ROOT / "examples").rglob("*.py"))


@cache
def public(module: str) -> frozenset[str] | None:
    """Names in the module's ``__all__``; None if there is no such module."""
    place = ROOT / Path(*module.split("."))
    file = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
    if not file.is_file():
        return None
    names: set[str] = set()
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        targets = node.targets if isinstance(node, ast.Assign) else []
        if isinstance(node, ast.Assign) and any(ast.unparse(target) == "__all__" for target in targets):
            names |= set(ast.literal_eval(node.value))
    return frozenset(names)


def problems(tree: ast.AST) -> list[str]:
    """Imports of the project's packages that are not of public names, or not from the package that has the name."""
    found = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.ImportFrom) or str(node.module).split(".")[0] not in PACKAGES:
            continue
        module = str(node.module)
        names, package = public(module), module.rpartition(".")[0]
        shorter = public(package) if package else None
        for alias in node.names:
            if names is None:
                found.append(f"there is no module {module}")
            elif alias.name not in names and public(f"{module}.{alias.name}") is None:
                found.append(f"{alias.name} is not in the __all__ of {module}")
            elif shorter and alias.name in shorter:
                found.append(f"{alias.name} stands in {package}; import it from there")
    return found


def code_blocks(page: Path) -> list[str]:
    blocks = re.findall(r"^```(?:python|py)\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    return [block for block in blocks if "import" in block]


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_pages_import_public_names(page: Path) -> None:
    assert [problem for block in code_blocks(page) for problem in problems(ast.parse(block))] == []


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_programs_import_public_names(program: Path) -> None:
    assert problems(ast.parse(program.read_text(encoding="utf-8"))) == []


def test_what_is_wrong_is_found() -> None:
    wrong = ast.parse(
        "from nas_core.search.run import search\nfrom nas_core.search import nothing\nfrom nas_core.nowhere import x\n"
        "from nas_core.search import search\nfrom os import path"
    )
    assert problems(wrong) == [
        "search stands in nas_core.search; import it from there",
        "nothing is not in the __all__ of nas_core.search",
        "there is no module nas_core.nowhere",
    ]
    assert code_blocks(ROOT / "README.md") and sum(len(code_blocks(page)) for page in PAGES) > 30
