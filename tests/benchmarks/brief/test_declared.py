"""What benchmarks say of themselves for ``make bench``."""

from __future__ import annotations

import argparse
import importlib
import shlex
from pathlib import Path
from typing import Any

import pytest

from benchmarks.__main__ import modules
from benchmarks.brief.declared import Brief, Figure, NoBrief, declared, lacking
from nas_core.errors import DataError
from nas_core.files import read_json
from tests.toys import ROOT

RESULTS = ROOT / "benchmarks" / "results"
BRIEFS = {name: declared(module) for name, module in modules().items()}
RUNS = {name: brief for name, brief in BRIEFS.items() if isinstance(brief, Brief)}


class Parsed(Exception):
    """The command line was read; nothing shall run."""


@pytest.mark.parametrize("name", BRIEFS)
def test_each_benchmark_has_a_small_size_or_says_why_not(name: str) -> None:
    assert is_told(BRIEFS[name])


def is_told(brief: Brief | NoBrief) -> bool:
    return bool(brief.figures) if isinstance(brief, Brief) else len(brief.reason.split()) > 3


@pytest.mark.parametrize("name", RUNS)
def test_a_size_is_a_command_line_of_the_benchmark(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read = argparse.ArgumentParser.parse_args

    def stopping(self: argparse.ArgumentParser, *arguments: Any) -> None:
        raise Parsed(read(self, *arguments))

    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", stopping)
    main = importlib.import_module(modules()[name]).main
    with pytest.raises(Parsed) as parsed:
        main([*RUNS[name].arguments(tmp_path), "--out", str(tmp_path / "result.json")])
    assert parsed.value.args[0].out == tmp_path / "result.json"
    words = shlex.split(RUNS[name].size)
    assert not [word for word in words if word in ("--out", "--work", "--folder") or word.startswith("/")]


@pytest.mark.parametrize("name", [name for name in RUNS if (RESULTS / f"{name}.json").exists()])
def test_the_figures_stand_in_the_result_of_a_large_run(name: str) -> None:
    content = read_json(RESULTS / f"{name}.json")
    for figure in RUNS[name].figures:
        assert isinstance(figure.read(content), bool | int | float), figure.what


def test_no_benchmark_of_all_opens_the_machine_to_others() -> None:
    """NNI's manager asks for no password and listens on all interfaces; who wants that asks for it."""
    brief = BRIEFS["nni_robustness"]
    assert isinstance(brief, NoBrief)
    assert "listens on all interfaces" in brief.reason or "nni, which is not installed" in brief.reason


@pytest.mark.parametrize(
    "result",
    [
        {},
        {"rows": []},
        {"rows": [{"kind": "a", "ms": 1.0}] * 2},
        {"rows": [{"kind": "a"}]},
        {"rows": [{"kind": "a", "ms": "fast"}]},
        {"rows": [{"kind": "a", "ms": float("nan")}]},
    ],
)
def test_a_figure_that_is_not_there_is_named(result: Any) -> None:
    with pytest.raises(DataError, match="no figure 'time'"):
        Figure("time", ("rows", {"kind": "a"}, "ms")).read(result)


def test_a_figure_of_the_row_that_is_meant() -> None:
    rows = [{"kind": "b", "ms": {"median": 3}}, {"kind": "a", "ms": {"median": 2.5}}]
    assert Figure("time", ("rows", {"kind": "a"}, "ms", "median")).read({"rows": rows}) == 2.5


def test_what_is_missing_is_named_without_its_folder(tmp_path: Path) -> None:
    (tmp_path / "here.npz").touch()
    assert lacking(("json",), (tmp_path / "here.npz",)) is None
    told = lacking(("no_such_module",), (tmp_path / "here.npz", tmp_path / "b.npz", tmp_path / "c.npz"))
    assert told == "no module no_such_module; b.npz, c.npz are absent from the folder that NAS_EXT_DATA names"


def test_a_module_of_ours_that_is_not_there_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "is_wrong.py").write_text("import nas_core.nowhere\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ModuleNotFoundError, match=r"nas_core\.nowhere"):
        declared("is_wrong")


def test_a_package_that_is_not_installed_is_a_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "needs_more.py").write_text("import no_such_host\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    brief = declared("needs_more")
    assert brief == NoBrief("it imports no_such_host, which is not installed") and is_told(brief)
