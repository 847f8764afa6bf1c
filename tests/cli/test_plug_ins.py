"""`nas-ext doctor` lists what other distributions plug in, whatever they do at their import."""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path

import pytest

from nas_core.cli import main, plug_ins
from nas_core.cli.plug_ins import GROUPS, PlugIn, found_plug_ins, installed_plug_ins, plug_ins_table
from tests.toys import ROOT, plug_in

ROUTER = ("nas_ext.routers", "blocks", "examples.plugins.router:BlockRouter")


@pytest.fixture(autouse=True)
def only_those_of_the_test(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is installed beside the project on this machine is left aside, and hosts are not imported."""
    there = set(installed_plug_ins())
    monkeypatch.setattr(plug_ins, "installed_plug_ins", lambda: [p for p in installed_plug_ins() if p not in there])
    monkeypatch.setattr("nas_core.cli.doctor.HOSTS", ())


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["doctor", *arguments]) == 0
    return capsys.readouterr().out


def test_none(capsys: pytest.CaptureFixture[str]) -> None:
    assert "plug-ins     none of other distributions\n" in told(capsys)
    assert told(capsys, "--plug-ins") == "plug-ins     none of other distributions\n"


def test_every_kind_of_defect_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    modules = tmp_path / "modules"
    modules.mkdir()
    sources = {"raises": "raise ValueError('mutable\\nsecond')", "leaves": "import os; os._exit(7)"}
    for name, source in sources.items():
        (modules / f"its_import_{name}.py").write_text(source, encoding="utf-8")
    monkeypatch.syspath_prepend(modules)
    for number, each in enumerate(
        (
            ROUTER,
            ("nas_ext.strategies", "leaves", "its_import_leaves:X"),
            ("nas_ext.strategies", "raises", "its_import_raises:X"),
            ("nas_ext.strategies", "renamed", "examples.plugins.strategy:HillClimbing"),
            ("nas_ext.strategies", "typo", "examples.plugins.strategy:HilClimbing"),
            ("nas_ext.strategys", "hill-climbing", "examples.plugins.strategy:HillClimbing"),
            ("nas_ext.hosts", "none", "math:pi"),
            ("nas_ext.network_families", "ends", "its_import_leaves:FAMILIES"),
            ("nas_ext.network_families", "no-sequence", "math:pi"),
            ("nas_ext.commands", "gone", "no_such_module:app"),
        )
    ):
        plug_in(tmp_path / str(number), monkeypatch, *each)
    found = {one["name"]: one for one in json.loads(told(capsys, "--plug-ins", "--json"))["plug_ins"]}
    assert found["blocks"] == {
        **PlugIn(*ROUTER, "plugged-blocks", "1.0")._asdict(), "usable": True, "error": None,
    }  # fmt: skip
    errors = {name: one["error"] for name, one in found.items() if not one["usable"]}
    assert errors.keys() == found.keys() - {"blocks"}
    for name, said in {
        "leaves": "its import ended the interpreter (exit code 7)",
        "raises": "strategy 'raises' (its_import_raises:X) does not import: ValueError: mutable; mend or uninstall it",
        "renamed": "calls itself 'hill-climbing'; both names must be one",
        "typo": "has no attribute 'HilClimbing'",
        "hill-climbing": "unknown group of entry points 'nas_ext.strategys'",
        "none": "an object of float; expected one with name, recognises and open",
        "ends": "its import ended the interpreter (exit code 7)",
        "no-sequence": "are no sequence of Family objects",
        "gone": "does not import: No module named 'no_such_module'",
    }.items():
        assert said in str(errors[name]) and "\n" not in str(errors[name])
    shown = "\n".join(plug_ins_table(list(found.values()))) + "\n"
    assert "plug-in      routers: blocks, of plugged-blocks 1.0: usable\n" in shown
    assert "plug-in      routers: blocks, of plugged-blocks 1.0\n" in told(capsys), "listed, but not imported"
    assert "plug-in      strategies: leaves, of plugged-leaves 1.0: not usable\n             -> its import" in shown


def test_an_import_that_hangs_is_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "its_import_hangs.py").write_text("import time; time.sleep(100)", encoding="utf-8")
    monkeypatch.setattr(plug_ins, "_TIMEOUT_S", 4)  # private: nobody waits two minutes
    plug_in(tmp_path, monkeypatch, "nas_ext.commands", "hangs", "its_import_hangs:app")
    (found,) = found_plug_ins()
    assert found["error"] == "its import did not end within 4 s"


def test_nothing_is_imported_in_this_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "its_import_is_harmless.py").write_text("app = 1", encoding="utf-8")
    plug_in(tmp_path, monkeypatch, "nas_ext.commands", "harmless", "its_import_is_harmless:app")
    (found,) = found_plug_ins()
    assert found["usable"] and "its_import_is_harmless" not in sys.modules


def test_groups_are_those_of_the_code() -> None:
    """A registry with a new group has a line in the table."""
    named = set()
    for file in (ROOT / "nas_core").rglob("*.py"):
        if file.name != "plug_ins.py":
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith("nas_ext."):
                    named.add(node.value)
    assert {name for name in named if " " not in name and name.count(".") == 1} == set(GROUPS)
