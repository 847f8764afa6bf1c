"""`nas-ext doctor` lists what other distributions plug in, whatever they do at their import."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nas_core.cli import doctor, main
from nas_core.cli.doctor import PlugIn, found_plug_ins, installed_plug_ins
from tests.toys import plug_in

SUMS = ("nas_ext.hosts", "sums", "examples.plugins.quickstart:ADAPTER")


@pytest.fixture(autouse=True)
def only_those_of_the_test(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is installed beside the project on this machine is left aside, and hosts are not imported."""
    there = set(installed_plug_ins())
    monkeypatch.setattr(doctor, "installed_plug_ins", lambda: [p for p in installed_plug_ins() if p not in there])
    monkeypatch.setattr("nas_core.cli.doctor.HOSTS", ())


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["doctor", *arguments]) == 0
    return capsys.readouterr().out


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
            SUMS,
            ("nas_ext.strategies", "leaves", "its_import_leaves:X"),
            ("nas_ext.strategies", "raises", "its_import_raises:X"),
            ("nas_ext.strategies", "renamed", "examples.plugins.strategy:HillClimbing"),
            ("nas_ext.strategies", "typo", "examples.plugins.strategy:HilClimbing"),
            ("nas_ext.strategys", "hill-climbing", "examples.plugins.strategy:HillClimbing"),
            ("nas_ext.hosts", "none", "math:pi"),
            ("nas_ext.hosts", "odd", "tests.cli.test_main:ODD"),
        )
    ):
        plug_in(tmp_path / str(number), monkeypatch, *each)
    found = {one["name"]: one for one in json.loads(told(capsys, "--plug-ins", "--json"))["plug_ins"]}
    assert found["sums"] == {
        **PlugIn(*SUMS, "plugged-sums", "1.0")._asdict(), "usable": True, "error": None,
    }  # fmt: skip
    errors = {name: one["error"] for name, one in found.items() if not one["usable"]}
    assert errors.keys() == found.keys() - {"sums"}
    for name, said in {
        "leaves": "its import ended the interpreter (exit code 7)",
        "raises": "strategy 'raises' (its_import_raises:X) does not import: ValueError: mutable; mend or uninstall it",
        "renamed": "calls itself 'hill-climbing'; both names must be one",
        "typo": "has no attribute 'HilClimbing'",
        "hill-climbing": "unknown group of entry points 'nas_ext.strategys'",
        "none": "is an object of float; expected an object of Adapter",
        "odd": "part of 'odd' (broken_command:app) does not import: No module named 'broken_command'",
    }.items():
        assert said in str(errors[name]) and "\n" not in str(errors[name])
    shown = told(capsys, "--plug-ins")
    assert "plug-in      hosts: sums, of plugged-sums 1.0: usable\n" in shown
    assert "plug-in      hosts: sums, of plugged-sums 1.0\n" in told(capsys), "listed, but not imported"
    assert "plug-in      strategies: leaves, of plugged-leaves 1.0: not usable\n             -> its import" in shown


def test_an_import_that_hangs_is_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "its_import_hangs.py").write_text("import time; time.sleep(100)", encoding="utf-8")
    monkeypatch.setattr(doctor, "_TIMEOUT_S", 4)  # private: nobody waits two minutes
    plug_in(tmp_path, monkeypatch, "nas_ext.hosts", "hangs", "its_import_hangs:app")
    (found,) = found_plug_ins()
    assert found["error"] == "its import did not end within 4 s"
