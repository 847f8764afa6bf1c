"""How tests are written: they share helpers and not each other, and go through public names."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

from tests.toys import ROOT

ADAPTERS = ("fairseq_ext", "timm_ext", "nni_ext", "naslib_ext", "optuna_ext")
PROJECT = ("nas_core", *ADAPTERS, "examples", "benchmarks", "tests")
FILES = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "tests").rglob("*.py"))
VALUES = ("_asdict", "_replace", "_fields", "_make")
"""Public names of named tuples."""
REASON = "# private:"
"""After it stands why a private name has to be used in this line."""


@cache
def tree(file: str) -> ast.Module:
    return ast.parse((ROOT / file).read_text(encoding="utf-8"))


def imported(file: str) -> list[tuple[int, str, str]]:
    """Line, module and name of each ``from module import name`` and ``import module`` (without a name)."""
    found = []
    for node in ast.walk(tree(file)):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name, "") for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            found += [(node.lineno, node.module, alias.name) for alias in node.names]
    return found


@pytest.mark.parametrize("file", FILES)
def test_no_test_module_imports_another(file: str) -> None:
    tests = [f"line {line}: {module}.{name}" for line, module, name in imported(file) if _is_test(module, name)]
    assert not tests, f"{file} imports a test module; move what both need to a module beside them"


def _is_test(module: str, name: str) -> bool:
    parts = [*module.split("."), name]
    return parts[0] == "tests" and any(part.startswith("test_") and _exists(parts, part) for part in parts)


def _exists(parts: list[str], part: str) -> bool:
    return (ROOT / Path(*parts[: parts.index(part) + 1])).with_suffix(".py").is_file()


@pytest.mark.parametrize("file", FILES)
def test_no_constructor_is_dodged(file: str) -> None:
    calls = [node.lineno for node in ast.walk(tree(file)) if isinstance(node, ast.Attribute) and node.attr == "__new__"]
    assert not calls, f"{file}, lines {calls}: build the object, or a toy of tests/toys.py"


@pytest.mark.parametrize("file", FILES)
def test_private_names_are_used_with_a_reason(file: str) -> None:
    lines = (ROOT / file).read_text(encoding="utf-8").splitlines()
    used = [
        (node.lineno, node.attr)
        for node in ast.walk(tree(file))
        if isinstance(node, ast.Attribute) and _private(node.attr) and not _own(node.value)
    ]
    ours = [(line, name) for line, module, name in imported(file) if module.split(".")[0] in PROJECT]
    used += [(line, name) for line, name in ours if _private(name)]
    bare = [f"line {line}: {name}" for line, name in used if REASON not in lines[line - 1]]
    assert not bare, f"{file} uses private names; test what is public, or say why after '{REASON}'"


@pytest.mark.parametrize("file", FILES)
def test_tests_of_devices_stand_where_they_are_collected(file: str) -> None:
    named = file.endswith("_on_device.py")
    functions = [node for node in ast.walk(tree(file)) if isinstance(node, ast.FunctionDef)]
    takers = [
        one.name
        for one in functions
        if {"device", "second_device"} & {argument.arg for argument in one.args.args}
        if one.name.startswith("test_")
    ]
    assert not takers or named, f"{file}: {takers} take a device; move them to a file test_*_on_device.py"
    assert not named or takers, f"{file} holds no test that takes the fixture device"


def _private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name not in VALUES


def _own(value: ast.expr) -> bool:
    """Whether it is an object's own name: of ``self``, ``cls`` or ``super()``."""
    called = value.func if isinstance(value, ast.Call) else value
    return isinstance(called, ast.Name) and called.id in ("self", "cls", "super")


def test_the_checks_find_what_they_look_for(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = ast.parse("from tests.test_tests import FILES\nobject.__new__(int)\nx._y\nself._z\nx._replace()")
    monkeypatch.setitem(globals(), "tree", lambda file: wrong)
    assert _is_test("tests.test_tests", "FILES") and not _is_test("tests.toys", "test_of_nothing")
    with pytest.raises(AssertionError, match="imports a test module"):
        test_no_test_module_imports_another("tests/toys.py")
    with pytest.raises(AssertionError, match=r"lines \[2\]"):
        test_no_constructor_is_dodged("tests/toys.py")
    devices = ast.parse("def test_it(device): ...")
    with monkeypatch.context() as patched, pytest.raises(AssertionError, match="take a device"):
        patched.setitem(globals(), "tree", lambda file: devices)
        test_tests_of_devices_stand_where_they_are_collected("tests/toys.py")
    with pytest.raises(AssertionError, match="holds no test"):
        test_tests_of_devices_stand_where_they_are_collected("tests/test_it_on_device.py")
    with pytest.raises(AssertionError, match="uses private names"):
        test_private_names_are_used_with_a_reason("tests/toys.py")
