"""The folder for OptunaHub: its front matter, its names, and its example, loaded as OptunaHub loads a package."""

from __future__ import annotations

import importlib.util
import re
import sys
from types import ModuleType

import pytest

from tests.toys import ROOT

PACKAGE = ROOT / "examples" / "optunahub" / "package" / "samplers" / "nas_ext"


def load() -> ModuleType:
    """By the path of its ``__init__``, under a name of OptunaHub's."""
    spec = importlib.util.spec_from_file_location(
        "optunahub_registry.package.samplers.nas_ext", PACKAGE / "__init__.py"
    )
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("file", ["example.py", "README.md"])
def test_the_examples_run(file: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    hub = ModuleType("optunahub")  # which would fetch the folder from its registry
    hub.load_module = lambda package: {"samplers/nas_ext": load()}[package]  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "optunahub", hub)
    text = (PACKAGE / file).read_text(encoding="utf-8")
    code = text if file.endswith(".py") else re.findall(r"```python\n(.*?)```", text, re.DOTALL)[0]
    exec(compile(code, file, "exec"), {})
    output = capsys.readouterr().out
    assert ("'layers': 4}" in output) if file == "README.md" else ("softmax" in output)
