"""Experiments as files: what is read, what is filled in, which commands come out and are run."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from examples.papers import __main__ as command
from examples.papers.experiment import FOLDER, list_experiments, read_experiment
from nas_core.errors import ConfigError, DataError, UnknownChoiceError
from nas_core.space import get_space

NAMES = list_experiments()
GIVEN = {"DATA": "data", "TEST": "test", "LIMIT_MS": "9", "ARCH": "a.json", "OUT": "out"}
WRITE = """
import pathlib, sys

path = pathlib.Path(sys.argv[1])
path.parent.mkdir(exist_ok=True)
path.open("a").write("x")
"""
OWN = """
about: two files
variables:
  DATA: a word
  OUT: {default: run, help: folder}
  MORE: {default: "", help: further words, options: true}
  ARCH: {finalist_of: "{OUT}/search", help: architecture}
steps:
  first:
    about: one
    makes: "{OUT}/first"
    run:
      - python SCRIPT {OUT}/first {DATA} {MORE}  # a comment
  second: {about: two, makes: "{OUT}/second", run: ["python SCRIPT {OUT}/second {ARCH}"]}
  third: {about: three, optional: true, makes: "{OUT}/third", run: [python -c 0]}
"""


@pytest.fixture
def own(tmp_path: Path) -> Path:
    (tmp_path / "write.py").write_text(WRITE)
    return changed(tmp_path / "own.yml")


def changed(path: Path, old: str = "", new: str = "") -> Path:
    """The experiment of these tests with other words in it."""
    assert old in OWN
    path.write_text(OWN.replace(old, new).replace("SCRIPT", str(path.parent / "write.py")))
    return path


def finalists(folder: Path) -> Path:
    """What a search leaves: the best under two limits, and one of the front."""
    rows = [("a", ["20 ms"], 3.0), ("b", ["30 ms"], 2.0), ("c", [], 1.0)]
    listed = [
        {"file": f"finalists/{n}.json", "best_of": best, "over_limit": [], "metrics": {"loss": loss}}
        for n, best, loss in rows
    ]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "finalists.json").write_text(json.dumps({"finalists": listed}))
    return folder


def main(*arguments: Any) -> int:
    return command.main([str(argument) for argument in arguments])


def test_the_experiments_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    expected = ["mos_wmt14_en_de", "hat_iwslt14_de_en", "mformer_wmt14_en_de", "mformer_cifar10", "nn_former"]
    assert sorted([*expected, "ranknas_wmt14_en_de"]) == NAMES
    assert main() == 0
    listed = capsys.readouterr().out
    assert all(f"\n{name} " in listed or listed.startswith(name) for name in NAMES)
    assert main("mos_wmt14_en_de", "--show") == 0
    assert capsys.readouterr().out == (FOLDER / "mos_wmt14_en_de.yml").read_text()
    assert get_space(FOLDER / "spaces" / "ranknas_wmt14_en_de.yml").cardinality() > 1e19


@pytest.mark.parametrize("name", NAMES)
def test_every_step_is_a_whole_command(name: str) -> None:
    experiment = read_experiment(name)
    values = experiment.values({key: value for key, value in GIVEN.items() if key in experiment.variables})
    for step in experiment.steps.values():
        words = experiment.command(step, values)
        assert not any("{" in word or word.startswith("$") for word in words)
        assert step.makes.startswith("{OUT}/")
    used = " ".join(word for step in experiment.steps.values() for word in step.words)
    assert all("{" + variable + "}" in used for variable in experiment.variables)


def test_values_fill_the_commands(own: Path, tmp_path: Path) -> None:
    experiment = read_experiment(str(own))
    settings = {"DATA": "two words", "OUT": "out", "MORE": "--a 'b c'"}
    assert experiment.command(experiment.steps["first"], experiment.values(settings))[2:] == [
        "out/first",
        "two words",
        "--a",
        "b c",
    ]
    assert experiment.command(experiment.steps["first"], experiment.values({}), partly=True)[2:] == [
        "run/first",
        "$DATA",
    ]
    with pytest.raises(ConfigError, match=r"step second of own needs ARCH=\.\.\. \(after step search, or ARCH=FILE\)"):
        experiment.command(experiment.steps["second"], experiment.values(settings))
    finalists(tmp_path / "search")
    assert experiment.values({"OUT": str(tmp_path)})["ARCH"] == str(tmp_path / "search/finalists/b.json")
    assert experiment.values({"OUT": str(tmp_path), "ARCH": "mine.json"})["ARCH"] == "mine.json"
    with pytest.raises(UnknownChoiceError, match=r"variable of experiment own 'DATE'.*Did you mean 'DATA'"):
        experiment.values({"DATE": "x"})


def test_steps_are_run_once_and_in_order(own: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "run"
    finalists(out / "search")
    assert main(own, "DATA=x", f"OUT={out}") == 0
    assert [(out / name).read_text() for name in ("first", "second")] == ["x", "x"]
    assert not (out / "steps" / "third.json").exists()
    assert main(own, "DATA=x", f"OUT={out}") == 0
    assert capfd.readouterr().out.count("done before") == 2
    assert main(own, "DATA=x", f"OUT={out}", "--step", "first", "--", "more") == 0
    assert json.loads((out / "steps" / "first.json").read_text())["extra"] == ["more"]
    assert [(out / name).read_text() for name in ("first", "second")] == ["xx", "x"]
    capfd.readouterr()
    assert main(own, "DATA=x", f"OUT={out}") == 0  # what read the first step's file before is out of date
    assert "first: one: done before with more\n" in capfd.readouterr().out
    assert [(out / name).read_text() for name in ("first", "second")] == ["xx", "xx"]
    (out / "first").unlink()
    moved = out.rename(tmp_path / "moved")
    assert main(own, "DATA=x", f"OUT={moved}") == 0
    assert [(moved / name).read_text() for name in ("first", "second")] == ["x", "xxx"]


def test_other_settings_do_not_go_on_from_files_of_a_step(
    own: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    finalists(out / "search")
    assert main(own, "DATA=x", "MORE=--n 16", f"OUT={out}") == 0
    for step in ([], ["--step", "first"]):
        capfd.readouterr()
        assert main(own, "DATA=x", "MORE=--n 4", f"OUT={out}", *step) == 2
        captured = capfd.readouterr()
        assert "step first was run with other settings (--n 16; now --n 4)" in captured.err and captured.out == ""
        assert f"give another OUT=, or remove {out / 'first'}" in captured.err
    (out / "second").unlink()
    assert main(own, "DATA=x", "MORE=", f"OUT={out}") == 2  # before a step is run
    assert "(--n 16; now nothing)" in capfd.readouterr().err
    assert [(out / name).exists() for name in ("first", "second")] == [True, False]
    (out / "first").rename(out / "old")
    assert main(own, "DATA=y", f"OUT={out}") == 0


def test_no_finalist_within_the_limit_is_no_default(own: Path, tmp_path: Path) -> None:
    experiment, settings = read_experiment(str(own)), {"DATA": "x", "OUT": str(tmp_path)}
    rows = [
        {"file": f"{name}.json", "best_of": [], "over_limit": ["9 ms"], "metrics": {"loss": loss},
         "measured": {"latency_ms": ms}}
        for name, loss, ms in (("a", 1.0, 30.0), ("b", 2.0, 10.0))
    ]  # fmt: skip
    listed = finalists(tmp_path / "search") / "finalists.json"
    listed.write_text(json.dumps({"finalists": rows}))
    with pytest.raises(ConfigError, match=r"needs ARCH=FILE: all finalists of .* the fastest with 10 ms \(.*b\.json\)"):
        experiment.command(experiment.steps["second"], experiment.values(settings))
    assert experiment.command(experiment.steps["first"], experiment.values(settings))
    for row in rows:  # searches without a limit on latency
        row["over_limit"] = []
    listed.write_text(json.dumps({"finalists": rows}))
    assert experiment.values(settings)["ARCH"] == str(tmp_path / "search" / "a.json")


def test_commands_are_shown_and_not_run(own: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(own, f"OUT={tmp_path / 'run'}", "--dry-run") == 0
    out = capsys.readouterr().out
    assert "# [1/2] first: one\npython " in out and "$DATA" in out and "$ARCH" in out
    assert not (tmp_path / "run").exists()
    assert main("mformer_cifar10", "DATA=c10", "--dry-run", "--step", "supernet", "--", "--updates", 5) == 0
    output = capsys.readouterr().out
    assert shlex.split(output.partition("\n")[2])[-2:] == ["--updates", "5"]
    assert "--opt-betas 0.9 0.998" in output


@pytest.mark.parametrize(
    ("arguments", "value"),
    [
        (["mos"], "'mos'"),
        (["mos_wmt14_en_de"], "DATA=..."),
        (["mos_wmt14_en_de", "DATA=x", "--step", "trian"], "'trian'"),
        (["mos_wmt14_en_de", "DATA"], "DATA"),
        (["mos_wmt14_en_de", "DATA=x", "--", "--cpu"], "--cpu"),
    ],
)
def test_wrong_input_is_one_line(arguments: list[str], value: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(arguments) == 2
    error = capsys.readouterr().err
    assert error.startswith("papers: error: ") and value in error and error.count("\n") == 1


def test_a_failed_step_ends_the_run(own: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    changed(own, "third: {about: three, optional: true", "third: {about: three")
    out = finalists(tmp_path / "run" / "search").parent
    assert main(own, "DATA=x", f"OUT={out}") == 2
    assert "step third ended without writing" in capsys.readouterr().err
    changed(own, "[python -c 0]", "['python -c \"raise SystemExit(3)\"']")
    assert main(own, "DATA=x", f"OUT={out}", "--step", "third") == 2
    assert "step third: python failed with exit code 3" in capsys.readouterr().err
    assert not (out / "steps" / "third.json").exists()
    changed(own, "[python -c 0]", "[no-such-command]")
    assert main(own, "DATA=x", f"OUT={out}", "--step", "third") == 2
    assert f"no-such-command is not installed in {Path(sys.executable).parent}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("old", "new", "value"),
    [
        ("about: two files", "about: [", "own.yml"),
        ("about: two files", "title: x", "title"),
        ("{DATA}", "{DTA}", "DTA"),
        ("optional: true", "optionall: true", "optionall"),
        ("help: architecture", "halp: x", "halp"),
        ("run: [python -c 0]", "run: 5", "own.yml"),
        (OWN[OWN.index("steps:") :], "steps: []", "own.yml"),
        ("  OUT: {default: run, help: folder}\n", "", "OUT"),
    ],
)
def test_files_that_are_no_experiment(own: Path, old: str, new: str, value: str) -> None:
    changed(own, old, new)
    with pytest.raises(DataError, match=value):
        read_experiment(str(own))
