"""The floors of the house: a room uses rooms below it and none above, and no files import each other in a circle."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("nas_core", "fairseq_ext", "timm_ext", "nni_ext", "naslib_ext", "optuna_ext")
FLOORS = (
    ("space", "layers", "graph"),
    ("export",),
    ("models",),
    ("supernet", "predictor", "proxies"),
    ("latency",),
    ("search",),
    ("studies", "report"),
    ("quickstart",),
    ("cli",),
)
"""Rooms of ``nas_core`` from the ground; what stands beside them (``errors``, ``files``) is the ground itself."""
GROUND = {"files"}
"""Folders of the ground."""
MOST_FILES = 20


@cache
def sources() -> dict[str, Path]:
    """Every module of the packages, with its file."""
    found = {}
    for package in PACKAGES:
        for file in sorted((ROOT / package).rglob("*.py")):
            parts = file.relative_to(ROOT).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return found


@cache
def imports() -> dict[str, frozenset[str]]:
    """The modules that each module names in its imports, wherever they stand; not those for type checkers alone."""
    known = sources()
    found = {}
    for module, file in known.items():
        names: set[str] = set()
        tree = ast.parse(file.read_text(encoding="utf-8"))
        skipped = {id(node) for block in ast.walk(tree) if _for_types(block) for node in ast.walk(block)}
        for node in ast.walk(tree):
            if id(node) in skipped:
                continue
            if isinstance(node, ast.Import):
                names.update(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                for alias in node.names:
                    full = f"{node.module}.{alias.name}"
                    names.add(full if full in known else node.module)
        found[module] = frozenset(names & known.keys() - {module})
    return found


def _for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def floor(module: str) -> int:
    """Of a room of ``nas_core``; -1 for the ground, and above all for adapters."""
    parts = module.split(".")
    if parts[0] != "nas_core":
        return len(FLOORS)
    room = parts[1] if len(parts) > 1 else ""
    return next((level for level, rooms in enumerate(FLOORS) if room in rooms), -1)


def room(module: str) -> str:
    """Of the core; of an adapter, itself."""
    parts = module.split(".")
    return ".".join(parts[:2] if parts[0] == "nas_core" else parts[:1])


def test_every_folder_of_the_core_is_a_room():
    rooms = {name for level in FLOORS for name in level}
    folders = {path.parent.name for path in (ROOT / "nas_core").glob("*/__init__.py")}
    assert folders <= rooms | GROUND


@pytest.mark.parametrize("module", sorted(sources()))
def test_a_room_uses_none_above(module: str):
    above = [name for name in imports()[module] if floor(name) > floor(module)]
    assert not above, f"{module} imports {above}, from a floor above"
    beside = [name for name in imports()[module] if 0 <= floor(name) == floor(module) and room(name) != room(module)]
    assert not beside, f"{module} imports {beside}, from a room of its own floor"


@pytest.mark.parametrize("module", sorted(sources()))
def test_a_registry_names_none_above(module: str):
    """Lines ``"module:object"`` are imported too, only later."""
    tree = ast.parse(sources()[module].read_text(encoding="utf-8"))
    strings = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    named = {text.partition(":")[0] for text in strings if ":" in text} & sources().keys()
    assert not [name for name in named if floor(name) > floor(module)]


def test_no_circle_of_files():
    done: set[str] = set()
    path: list[str] = []

    def visit(module: str) -> None:
        if module in path:
            raise AssertionError("circle: " + " -> ".join([*path[path.index(module) :], module]))
        if module in done:
            return
        path.append(module)
        for name in sorted(imports()[module]):
            visit(name)
        done.add(path.pop())

    for module in imports():
        visit(module)


def test_no_folder_holds_more_than_twenty_files():
    folders = [
        path
        for top in (*PACKAGES, "examples", "benchmarks", "tests")
        for path in [ROOT / top, *(ROOT / top).rglob("*")]
        if path.is_dir() and path.name != "__pycache__"
    ]
    crowded = {str(path.relative_to(ROOT)): len(files) for path in folders if len(files := _files(path)) > MOST_FILES}
    assert not crowded


def _files(folder: Path) -> list[Path]:
    """Its own source files; results and pictures do not count."""
    return [path for path in folder.iterdir() if path.suffix in {".py", ".js", ".yml", ".md"}]
