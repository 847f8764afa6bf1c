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
from tools.compatibility.environment import Failed, packages
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
)
from tools.compatibility.page import PAGE, RESULTS, page
from tools.compatibility.trying import PROGRAMS, doctor_is_wrong, doctor_says

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
    assert set(re.findall(r"<!-- made: (\w+) -->", text)) == {"tried", "versions", "resolved"}
    assert page(text, NOTED) == text, "run: python -m tools.compatibility --page"


def test_everything_noted_is_whole() -> None:
    known = combinations()
    for one in NOTED["tried"]:
        combination = Combination(*(one[name] for name in Combination._fields))
        assert combination in known
        if one["result"] == "works":
            asked = set(packages(requirements(project(), combination.extra)))
            assert set(one["packages"]) == asked, combination
            assert any(line.startswith("torch ") for line in one["doctor"])
    systems = {(one["system"], one["python"], one["extra"]) for one in NOTED["resolved"]}
    asked = {(PYTHONS[0], extra) for extra in EXTRAS if extra != "fairseq"} | {(python, CORE) for python in PYTHONS}
    assert systems == {(system, *one) for system in PLATFORMS for one in asked}


def test_nothing_but_what_is_named_needs_more_than_wheels() -> None:
    """``pip install nas-ext`` never compiles: on Linux wheels suffice, but for what is source only."""
    first = [one for one in NOTED["resolved"] if (one["system"], one["python"]) == ("Linux, x86-64", PYTHONS[0])]
    assert [one["extra"] for one in first if one["error"]] == []
    assert set(SOURCE_ONLY) == {"fairseq", "naslib"}


def words(*, python: str = "3.12.1", **told: str) -> str:
    """What ``nas-ext doctor`` prints, with some lines otherwise."""
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


def test_a_failure_and_another_way_stand_in_the_table() -> None:
    one = {"extra": CORE, "python": "3.11", "versions": "newest", "packages": {"torch": "2.13.0"}, "doctor": []}
    noted = {
        "interpreters": {"3.11": "3.11.7", "3.14": None},
        "tried": [
            {**one, "source": "wheel", "installer": "uv", "result": "works"},
            {**one, "source": "sdist", "installer": "uv", "result": "use: a | b"},
        ],
    }
    text = page("<!-- made: tried -->\nold\n<!-- /made -->\n\n<!-- made: versions -->\n<!-- /made -->\n", noted)
    assert "| none | works; sdist use: a \\| b |" in text and "| `timm` | untried |" in text and "old" not in text
    assert "No interpreter of Python 3.14 was at hand" in text and "| torch | untried | 2.13.0 |" in text


def test_a_wrong_option_is_one_line(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tools.compatibility", "--extras", "nothing"],
        cwd=ROOT, capture_output=True, encoding="utf-8", check=False,
    )  # fmt: skip
    assert done.returncode == 2 and "invalid choice: 'nothing'" in done.stderr and "Traceback" not in done.stderr
