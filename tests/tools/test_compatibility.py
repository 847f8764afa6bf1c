"""The environments that ``make compatibility`` tries, and the page of what came of them; nothing is installed here."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from nas_core.optional import install_line
from tests.toys import ROOT
from tools.compatibility import __main__ as command
from tools.compatibility import environment
from tools.compatibility.environment import Environment, Failed, packages
from tools.compatibility.matrix import (
    CORE,
    EXTRAS,
    HOSTS,
    PLATFORMS,
    PYTHONS,
    SOURCE_ONLY,
    Combination,
    combinations,
    project,
    requirements,
    wheels_of,
)
from tools.compatibility.page import PAGE, RESULTS, page
from tools.compatibility.trying import PROGRAMS, WORKS, doctor_is_wrong, doctor_says, to_try

NOTED = json.loads(RESULTS.read_text(encoding="utf-8"))
EXTRAS_OF_A_CLONE = {"all", "dev", "docs", "mutants"}
"""``all`` is several of the others at once; the other two serve who works on the project."""


def test_every_extra_is_tried_alone_with_lowest_and_newest_versions() -> None:
    extras = project()["optional-dependencies"]
    assert isinstance(extras, dict)
    assert {CORE, *extras} == {*EXTRAS, *EXTRAS_OF_A_CLONE}
    first = {(one.extra, one.versions) for one in combinations() if one.python == PYTHONS[0]}
    assert first == {(extra, versions) for extra in EXTRAS for versions in ("newest", "lowest")}
    core = {(one.source, one.installer) for one in combinations() if one.extra == CORE}
    assert core == {("wheel", "uv"), ("sdist", "uv"), ("wheel", "pip")}
    assert {(one.python, one.versions) for one in combinations(extras=[CORE])} == {
        (python, versions) for python in PYTHONS for versions in ("newest", "lowest")
    }


def test_what_an_extra_asks_for_follows_other_extras() -> None:
    settings = {
        "dependencies": ["torch>=2.6,<3", "PyYAML"],
        "optional-dependencies": {"one": ["first==1; sys_platform == 'linux'"], "both": ["nas-ext[one]", "second>=2"]},
    }
    assert requirements(settings, CORE) == ["torch>=2.6,<3", "PyYAML"]
    assert packages(requirements(settings, "both")) == ["first", "pyyaml", "second", "torch"]


def test_programs_use_public_names_and_compile() -> None:
    programs = {file.stem for file in PROGRAMS.glob("*.py")}
    assert programs == set(EXTRAS) - {"cuda"}  # it needs a GPU; the core's program runs beside it
    for file in PROGRAMS.glob("*.py"):
        assert ast.get_docstring(ast.parse(file.read_text(encoding="utf-8")))


def test_the_page_is_as_noted() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert set(re.findall(r"<!-- made: (\w+) -->", text)) == {"tried", "where", "versions", "resolved"}
    assert page(text, NOTED, project()) == text, "run: python -m tools.compatibility --page"


def test_everything_noted_is_whole() -> None:
    known = combinations()
    for one in NOTED["tried"]:
        combination = Combination(*(one[name] for name in Combination._fields))
        assert combination in known
        assert {"system", "interpreter", "date", "nas_ext"} <= one.keys()
        assert one["interpreter"].startswith(f"{one['python']}.")
        if one["result"] == WORKS:
            assert set(one["packages"]) == set(packages(one["asked"])), combination
            assert any(line.startswith("torch ") for line in one["doctor"])
    systems = {(one["system"], one["python"], one["extra"]) for one in NOTED["resolved"]["rows"]}
    asked = {(PYTHONS[0], extra) for extra in EXTRAS if extra != "fairseq"} | {(python, CORE) for python in PYTHONS}
    assert systems == {(system, *one) for system in PLATFORMS for one in asked}


def test_no_failure_is_noted_without_its_reason() -> None:
    """What failed for the moment, such as on a busy machine, is tried again before it is handed in."""
    without = [one for one in NOTED["tried"] if one["result"] != WORKS and not one.get("why", "").strip()]
    assert without == []


def test_nothing_but_what_is_named_needs_more_than_wheels() -> None:
    """``pip install nas-ext`` never compiles: on Linux wheels suffice, but for what is source only."""
    today = {extra: wheels_of(project(), extra) for extra in EXTRAS if extra != "fairseq"}
    assert NOTED["resolved"]["asked"] == today, "run: python -m tools.compatibility --resolve"
    rows = NOTED["resolved"]["rows"]
    first = [one for one in rows if (one["system"], one["python"]) == ("Linux, x86-64", PYTHONS[0])]
    assert [one["extra"] for one in first if one["error"]] == []
    assert set(SOURCE_ONLY) == {"fairseq", "naslib"}


def words(*, python: str = "3.12.1", **told: str) -> str:
    """What ``nas-ext doctor --import`` prints, with some lines otherwise."""
    lines = ["nas-ext      0.1.0", f"python       {python} on Linux", "accelerator  none: the CPU is used"]
    for name in ("torch", "fairseq", "timm", "nni", "naslib", "optuna", "onnx"):
        said = told.get(name, "2.13.0+cpu" if name == "torch" else "not installed")
        lines.append(f"{name:<12} {said}")
        if said == "not installed":
            lines.append(f"{'':<12} -> {install_line(name)}")
    return "\n".join([*lines, "plug-ins     none of other distributions"])


REPAIRED = "1.0.31, torchvision is a CUDA build beside a CPU torch: repaired on import"


@pytest.mark.parametrize(
    ("extra", "said", "wrong"),
    [
        (CORE, words(), ""),
        ("timm", words(timm=REPAIRED), ""),
        ("dashboard", words(optuna="5.0.0"), ""),
        ("naslib", words(), ""),
        (CORE, words(python="3.11.7"), "its Python is another"),
        (CORE, words(torch="not installed"), "torch is installed"),
        ("timm", words(), "timm is installed"),
        ("timm", words(timm="1.0.31, does not import: RuntimeError: nms"), "timm is installed"),
        (CORE, words(onnx="1.23.2"), "onnx is not installed"),
        (CORE, words().replace("-> pip install 'nas-ext[nni]'", ""), "nni is not installed"),
    ],
)
def test_the_doctor_is_judged(extra: str, said: str, wrong: str) -> None:
    found = doctor_is_wrong(said, Combination(extra, "3.12", "newest"))
    assert found == (f"nas-ext doctor is wrong: {wrong}" if wrong else "")


def test_the_doctor_is_quoted_without_the_machine() -> None:
    assert doctor_says(words(timm=REPAIRED)) == ["torch 2.13.0+cpu", f"timm {REPAIRED}"]
    assert set(HOSTS) < set(EXTRAS)


def test_what_failed_is_told_by_its_last_line() -> None:
    assert Failed(["x"], "first\nlast \n\n").last == "last"
    assert Failed(["x"], "").last == "it said nothing"


@pytest.mark.parametrize(
    ("said", "last"),
    [
        (
            "error: Failed to fetch: `https://name:word@packages.example/torch/`",
            "error: Failed to fetch: `URL`",
        ),
        ("error: Failed to build `x @ file:///home/name/x-1.tar.gz`", "error: Failed to build `x @ URL`"),
        (
            "ERROR: HTTPSConnectionPool(host='packages.example', port=443): Max retries exceeded",
            "ERROR: HTTPSConnectionPool(host=URL, port=443): Max retries exceeded",
        ),
        ("ERROR: cannot read '/tmp/build-7/x/setup.py'", "ERROR: cannot read 'setup.py'"),
    ],
)
def test_the_last_line_names_no_address_and_no_folder(said: str, last: str) -> None:
    assert Failed(["x"], f"first\n{said}\n").last == last


def test_what_takes_too_long_is_told_with_what_it_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "LIMIT_S", 1)
    with pytest.raises(Failed, match=r"\ndid not end within 1 s") as failed:
        Environment(tmp_path / "one", "true", "3.11").run(["sh", "-c", "echo begun; exec sleep 60"])
    assert "b'" not in str(failed.value) and failed.value.last == "did not end within 1 s"


SETTINGS: dict[str, object] = {
    "version": "0.2.0",
    "dependencies": ["torch>=2.6"],
    "optional-dependencies": {extra: [f"{extra}>=1"] for extra in EXTRAS if extra != CORE},
}
ENTRY = {
    "extra": CORE, "python": "3.11", "versions": "newest", "source": "wheel", "installer": "uv", "result": WORKS,
    "system": "Linux x86_64", "interpreter": "3.11.7", "date": "2026-01-02", "nas_ext": "0.2.0",
    "asked": ["torch>=2.6"], "packages": {"torch": "2.13.0+cpu"}, "doctor": [],
}  # fmt: skip


def tables(*tried: dict[str, object]) -> str:
    """The tables of these entries."""
    text = "".join(f"<!-- made: {name} -->\nold\n<!-- /made -->\n\n" for name in ("tried", "where", "versions"))
    return page(text, {"tried": tried}, SETTINGS)


def test_a_failure_and_another_way_stand_in_the_table() -> None:
    text = tables(ENTRY, {**ENTRY, "source": "sdist", "result": "use: a | b", "why": "c of d"})
    assert "| none | works; sdist use: a \\| b (c of d) |" in text and "| `timm` | untried |" in text
    assert "Untried so far: Python 3.12, 3.13, 3.14." in text and "old" not in text
    assert "| torch | untried | 2.13.0 |" in text


def test_a_run_on_another_machine_leaves_the_page_true() -> None:
    other = {**ENTRY, "system": "Linux aarch64", "interpreter": "3.11.9", "date": "2026-01-05"}
    text = tables(other, {**ENTRY, "asked": ["torch>=2.5"]}, {**ENTRY, "versions": "lowest", "date": "2026-01-03"})
    assert (
        "| extra | Linux aarch64, Python 3.11, newest | Linux x86_64, Python 3.11, newest"
        " | Linux x86_64, Python 3.11, lowest |" in text
    )
    assert "| none | works | works, with the requirements of then | works |" in text
    assert "| Linux aarch64 | 3.11.9 | 0.2.0 | 2026-01-05 | newest: no extra |" in text
    assert "| Linux x86_64 | 3.11.7 | 0.2.0 | 2026-01-02 to 2026-01-03 | newest: no extra; lowest: no extra |" in text


def test_what_failed_or_was_of_something_else_is_tried_again() -> None:
    assert not to_try(ENTRY, SETTINGS)
    assert to_try(None, SETTINGS)
    for other in ({"result": "use: no"}, {"nas_ext": "0.1.0"}, {"asked": ["torch>=2.5"]}):
        assert to_try({**ENTRY, **other}, SETTINGS)


def test_a_run_notes_what_it_tries_and_keeps_the_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    results, written, uv = tmp_path / "results.json", tmp_path / "page.md", tmp_path / "uv"
    uv.write_text(f"#!/bin/sh\necho {sys.executable}\n")
    uv.chmod(0o755)
    elsewhere = {**ENTRY, "system": "Elsewhere", "asked": requirements(project(), CORE)}
    results.write_text(json.dumps({"tried": [elsewhere], "resolved": {}}))
    written.write_text("<!-- made: where -->\n<!-- /made -->\n")
    tried: list[Combination] = []

    def trying(one: Combination, *_: object) -> tuple[dict[str, object], str]:
        tried.append(one)
        return {"result": WORKS, "packages": {}, "doctor": []}, ""

    stand_ins = {"RESULTS": results, "PAGE": written, "find_uv": lambda: str(uv), "build": lambda *_: {}}
    for name, stand_in in {**stand_ins, "try_one": trying}.items():
        monkeypatch.setattr(command, name, stand_in)
    asked = ["tools.compatibility", "--extras", CORE, "--pythons", "3.11", "--versions", "lowest"]
    monkeypatch.setattr(sys, "argv", [*asked, "--work", str(tmp_path / "work")])
    assert command.main() == 0 and tried == [Combination(CORE, "3.11", "lowest")]
    assert command.main() == 0 and len(tried) == 1
    here, before = sorted(json.loads(results.read_text())["tried"], key=lambda one: one["system"] == "Elsewhere")
    assert before == elsewhere
    assert here["nas_ext"] == project()["version"] and here["asked"] == requirements(project(), CORE)
    assert re.fullmatch(r"\d+\.\d+\.\w+", here["interpreter"]) and here["interpreter"] in written.read_text()


def test_a_wrong_option_is_one_line() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tools.compatibility", "--extras", "nothing"],
        cwd=ROOT, capture_output=True, encoding="utf-8", check=False,
    )  # fmt: skip
    assert done.returncode == 2 and "invalid choice: 'nothing'" in done.stderr and "Traceback" not in done.stderr
