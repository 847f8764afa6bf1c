"""tools/mutants: which mutants are tried, and what is said of those that survive."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from nas_core.errors import ConfigError
from tests.toys import ROOT
from tools.mutants import __main__ as command
from tools.mutants import tester
from tools.mutants.__main__ import main
from tools.mutants.plan import Mutant, drawn
from tools.mutants.settings import read_settings
from tools.mutants.tester import prepare, try_timeouts_again
from tools.mutants.verdict import ACCEPTED, Accepted, Found, judge, read_accepted, verdict

FILE = "toy/sums.py"
SOURCE = '''"""Sums."""


def total(numbers):
    found = 0
    for number in numbers:
        found += number
    return found


class Purse:
    def __init__(self, coins):
        self.coins = coins

    def pays(self, price):
        return total(self.coins) >= price
'''
TESTS = """from toy.sums import Purse, total


def test_total():
    assert total([1, 2, 3]) == 6


def test_purse():
    assert Purse([1, 2]).pays(2)
    assert not Purse([1, 2]).pays(4)
"""
TABLE = f"""[tool.nas-ext.mutants]
share = 0.9
sample = 50
seed = 0
beside = []

[tool.nas-ext.mutants.files]
"{FILE}" = ["tests/test_sums.py"]

[tool.pytest.ini_options]
pythonpath = ["."]
"""
MUTANTS = [Mutant(f"m{number}", "total", f"a{number}", f"b{number}") for number in range(30)]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A project with one file whose tests leave the price of exactly all coins open."""
    root = tmp_path / "project"
    files = {"pyproject.toml": TABLE, FILE: SOURCE, "tests/test_sums.py": TESTS, str(ACCEPTED): "[]\n"}
    for name, text in {**files, "toy/__init__.py": ""}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def accepts(mutant: Mutant, reason: str = "no test can") -> Accepted:
    return Accepted(FILE, mutant.function, mutant.before, mutant.after, reason)


def found(caught: int, tried: int, survivors: tuple[str, ...] = (), outdated: tuple[str, ...] = ()) -> Found:
    return Found(FILE, 100, tried, caught, 0, 0, list(survivors), list(outdated))


def test_the_table_of_this_project_can_be_read_and_its_accepted_survivors_stand_in_the_sources() -> None:
    settings = read_settings()
    assert settings.share >= 0.9 and len(settings.files) >= 16
    for entry in read_accepted(ROOT / ACCEPTED):
        assert entry.file in settings.files
        lines = {line.strip() for line in (ROOT / entry.file).read_text(encoding="utf-8").splitlines()}
        assert set(entry.before.splitlines()) <= lines, f"{entry} is not there any more"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("seed = 0\n", "", "lacks seed"),
        ("share = 0.9", "share = 9", "share is 9 and sample 50; expected a share up to 1"),
        ("sample = 50", "sample = 0", "sample 0; expected .* a positive number"),
        ("tests/test_sums.py", "tests/test_gone.py", r"names tests/test_gone\.py, which does not exist"),
    ],
)
def test_a_table_that_is_wrong_says_what(checkout: Path, old: str, new: str, said: str) -> None:
    (checkout / "pyproject.toml").write_text(TABLE.replace(old, new))
    with pytest.raises(ConfigError, match=said):
        read_settings(checkout)


def test_draws_are_the_same_each_time_and_fewer_are_the_first_of_more() -> None:
    assert drawn(MUTANTS, 30, "0") == MUTANTS
    some = drawn(MUTANTS, 20, "0")
    assert len(set(some)) == 20
    assert some == drawn(list(reversed(MUTANTS)), 20, "0")
    assert some[:5] == drawn(MUTANTS, 5, "0")
    assert some != drawn(MUTANTS, 20, "1")


def test_survivors_are_explained_or_named() -> None:
    statuses = {mutant.name: "killed" for mutant in MUTANTS}
    statuses |= {"m1": "survived", "m2": "no tests", "m3": "timeout", "m4": "segfault", "m5": "suspicious"}
    result = judge(FILE, MUTANTS, MUTANTS[:10], statuses, [accepts(MUTANTS[1])])
    assert (result.mutants, result.tried, result.caught, result.timeouts, result.accepted) == (30, 10, 7, 1, 1)
    assert result.share == 0.7
    assert result.survivors == ["total: a2 -> b2 (no tests)", "total: a5 -> b5 (suspicious)"]
    assert result.outdated == []


def test_entries_are_outdated_when_their_mutant_is_gone_or_caught_but_not_when_it_was_not_drawn() -> None:
    statuses = {mutant.name: "killed" for mutant in MUTANTS}
    entries = [accepts(MUTANTS[0]), accepts(MUTANTS[20]), accepts(Mutant("x", "total", "gone", "b"))]
    result = judge(FILE, MUTANTS, MUTANTS[:10], statuses, entries)
    assert result.outdated == [f"{FILE}, total: a0 -> b0", f"{FILE}, total: gone -> b"]
    elsewhere = Accepted("toy/other.py", "total", "gone", "b", "no test can")
    assert judge(FILE, MUTANTS, MUTANTS[:10], statuses, [elsewhere]).outdated == []


def test_the_verdict_asks_for_the_share_of_all_files_and_for_every_survivor() -> None:
    lines, enough = verdict([found(10, 10), found(8, 10)], 0.9)
    assert enough and lines == ["18 of 20 mutants caught, 90.0 %; expected at least 90 %"]
    assert not verdict([found(10, 10), found(7, 10)], 0.9)[1]
    assert not verdict([], 0.9)[1]
    lines, enough = verdict([found(99, 100, ("total: a -> b (survived)",), ("gone",))], 0.9)
    assert not enough
    assert lines[0] == f"survived: {FILE}, total: a -> b (survived)"
    assert lines[1] == "outdated: tools/mutants/accepted.yaml accepts gone"


ENTRY = {"file": FILE, "function": "total", "before": "a\nb", "after": "c", "reason": "equal"}


@pytest.mark.parametrize(
    ("entries", "said"),
    [
        ([{**ENTRY, "reason": " "}], "entry 1 gives no reason"),
        ([ENTRY, {**ENTRY, "reason": "else"}], "entry 2 stands there twice"),
        ([{key: ENTRY[key] for key in ("file", "function")}], "entry 1: expected the texts file, function, before"),
        ([{**ENTRY, "after": 3}], "entry 1: expected the texts"),
        (["total"], "entry 1: expected the texts"),
    ],
)
def test_entries_without_a_reason_or_with_something_else_are_refused(tmp_path: Path, entries: list, said: str) -> None:
    path = tmp_path / "accepted.yaml"
    path.write_text(yaml.safe_dump(entries))
    with pytest.raises(ConfigError, match=said):
        read_accepted(path)


def test_entries_are_read_with_several_lines(tmp_path: Path) -> None:
    path = tmp_path / "accepted.yaml"
    path.write_text("- file: toy/sums.py\n  function: f\n  before: |\n    a\n    b\n  after: c\n  reason: equal\n")
    (entry,) = read_accepted(path)
    assert (entry.before, entry.after, str(entry)) == ("a\nb", "c", "toy/sums.py, f: a | b -> c")


def test_a_file_begins_anew_when_it_or_its_tests_changed(checkout: Path, tmp_path: Path) -> None:
    settings, folder = read_settings(checkout), tmp_path / "work"
    known = folder / "mutants" / "known"

    def kept(keep: bool = False) -> bool:
        known.parent.mkdir(parents=True, exist_ok=True)
        known.touch()
        prepare(folder, FILE, settings, keep)
        return known.exists()

    prepare(folder, FILE, settings)
    assert (folder / "toy" / "sums.py").read_text() == SOURCE
    assert kept()
    (checkout / "tests/test_sums.py").write_text(TESTS + "\n")
    assert kept(keep=True)
    assert not kept()
    (checkout / FILE).write_text(SOURCE + "\n")
    assert not kept()


def test_names_that_are_not_in_the_table_are_refused(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["toy/other.py"], checkout)
    assert ended.value.code == 2
    assert "toy/other.py is not in the table; expected some of toy/sums.py" in capsys.readouterr().err
    (checkout / ACCEPTED).write_text(yaml.safe_dump([{**ENTRY, "file": "toy/other.py"}]))
    assert main([], checkout) == 2
    assert "accepts mutants of toy/other.py, which is not in the table" in capsys.readouterr().err


def test_what_ran_out_of_time_is_tried_once_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    statuses = {"m0": "killed", "m1": "timeout", "m2": "timeout", "m3": "timeout", "m4": "survived"}
    second = {"m1": "survived", "m2": "timeout"}
    runs: list[list[str]] = []

    def trying(folder: Path, mutants: list[Mutant]) -> None:
        runs.append([mutant.name for mutant in mutants])
        statuses.update({mutant.name: second[mutant.name] for mutant in mutants})

    monkeypatch.setattr(tester, "try_mutants", trying)
    monkeypatch.setattr(tester, "results", lambda _: statuses)
    for _ in range(2):  # m3 was not drawn
        try_timeouts_again(tmp_path, [each for each in MUTANTS[:5] if each.name != "m3"])
    assert runs == [["m1", "m2"]] and (statuses["m1"], statuses["m2"]) == ("survived", "timeout")


def test_the_summary_keeps_when_and_how_each_file_was_tried(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out, other = checkout / "mutants.json", "toy/__init__.py"
    text = TABLE.replace(f'"{FILE}" =', f'"{other}" = ["tests/test_sums.py"]\n"{FILE}" =')
    (checkout / "pyproject.toml").write_text(text)
    before = {"tried": 2, "caught": 2, "date": "2026-01-02", "command": "make mutants"}
    out.write_text(json.dumps({"files": {other: before}}))
    stand_ins = {
        "prepare": lambda *_, **__: None, "mutants_of": lambda *_: MUTANTS, "try_timeouts_again": lambda *_: None,
        "results": lambda _: {mutant.name: "killed" for mutant in MUTANTS}, "version": lambda _: "0",
    }  # fmt: skip
    for name, stand_in in stand_ins.items():
        monkeypatch.setattr(command, name, stand_in)
    assert main([FILE, "--sample", "9", "--out", str(out)], checkout) == 0
    content = json.loads(out.read_text())
    assert content["files"][other] == before and (content["tried"], content["caught"]) == (11, 11)
    record = content["files"][FILE]
    assert record["command"] == f"make mutants ARGS='{FILE} --sample 9'" and record["date"] > "2026-01-02"


def test_the_counts_handed_in_say_when_and_how_for_each_file() -> None:
    files = json.loads((ROOT / "benchmarks/results/mutants.json").read_text(encoding="utf-8"))["files"]
    assert files and set(files) <= set(read_settings().files)
    assert all(record["date"] and record["command"].startswith("make mutants") for record in files.values())


@pytest.mark.slow
def test_a_survivor_is_found_explained_or_met_by_a_test(
    checkout: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("mutmut", reason="mutmut is not installed; `make mutants` installs it")
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # mutmut starts pytest some dozen times
    out = checkout / "benchmarks/results/mutants.json"
    out.parent.mkdir(parents=True)
    survivor = "Purse.pays: return total(self.coins) >= price -> return total(self.coins) > price (survived)"
    assert main([], checkout) == 1
    assert f"survived: {FILE}, {survivor}" in capsys.readouterr().out
    record = json.loads(out.read_text())["files"][FILE]
    assert record["survivors"] == [survivor]
    assert record["caught"] == record["tried"] - 1 == record["mutants"] - 1 > 5
    # What was tried is not tried again: only the list of accepted survivors is another.
    before, _, after = survivor.removeprefix("Purse.pays: ").removesuffix(" (survived)").partition(" -> ")
    entry = {"file": FILE, "function": "Purse.pays", "before": before, "after": after, "reason": "free of charge"}
    (checkout / ACCEPTED).write_text(yaml.safe_dump([entry]))
    main([], checkout)
    said = capsys.readouterr().out
    assert "1 accepted, 0 unexplained" in said and " mutants\n" not in said
    (checkout / "tests/test_sums.py").write_text(TESTS + "\n\ndef test_all():\n    assert Purse([1, 2]).pays(3)\n")
    assert main(["--survivors"], checkout) == 1
    assert f"outdated: {ACCEPTED} accepts {FILE}, Purse.pays" in capsys.readouterr().out
    record = json.loads(out.read_text())["files"][FILE]
    assert record["share"] == 1.0 and record["survivors_alone_tried_again"]
