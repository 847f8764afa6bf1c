"""``make bench`` with benchmarks that stand in for real ones."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchmarks.brief.gather import gathered
from benchmarks.brief.machine_file import MachineFile, software
from nas_core.errors import DataError
from nas_core.files import read_json, write_json
from tests.toys import ROOT

DECLARED = """
import sys, time
from pathlib import Path
from benchmarks.brief.declared import Brief, Figure, NoBrief

BRIEF = Brief({size!r}, (Figure("how many", ("rows", {{"kind": "a"}}, "count")),), {more})

if __name__ == "__main__":
    out = Path(sys.argv[sys.argv.index("--out") + 1])
    with open({runs!r}, "a") as runs:
        runs.write(" ".join(sys.argv[1:-2]) + "\\n")
    {body}
"""
WRITES = """out.write_text('{"rows": [{"kind": "a", "count": 7}, {"kind": "b", "count": 1}]}')"""


class Stand:
    """Benchmarks in a folder of their own, and the file of this machine."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.modules = folder, dict[str, str]()
        self.path, self.work = folder / "machines" / "this.json", folder / "work"

    def add(self, name: str, body: str, size: str = "--count 2", more: str = "") -> None:
        runs = str(self.folder / f"{name}.runs")
        text = DECLARED.format(size=size, more=more, runs=runs, body=body)
        (self.folder / f"stand_{name}.py").write_text(text)
        sys.modules.pop(f"stand_{name}", None)
        self.modules[name] = f"stand_{name}"

    def gather(self, again: bool = False, limit_s: float | None = None) -> list[str]:
        return gathered(self.modules, MachineFile(self.path), self.work, again, limit_s)

    def runs(self, name: str) -> list[str]:
        file = self.folder / f"{name}.runs"
        return file.read_text().splitlines() if file.exists() else []

    def entry(self, name: str) -> dict[str, object]:
        entry: dict[str, object] = read_json(self.path)["benchmarks"][name]
        return entry


@pytest.fixture
def stand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stand:
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    return Stand(tmp_path)


def test_one_file_with_size_time_and_figures(stand: Stand) -> None:
    stand.add("first", WRITES)
    stand.add("second", WRITES, size="--names 'a b'")
    assert stand.gather() == []
    content = read_json(stand.path)
    assert content["measured"]["command"] == "make bench"
    assert {"cpu", "cores", "torch"} <= content["machine"].keys() and {"nas-ext", "python"} <= content[
        "versions"
    ].keys()
    entry = stand.entry("first")
    assert (entry["status"], entry["size"], entry["software"]) == ("done", "--count 2", software())
    assert entry["figures"] == [{"what": "how many", "value": 7, "unit": "x"}]
    assert min(float(str(entry[name])) for name in ("seconds", "cpu_s", "others_cores")) >= 0
    assert stand.runs("second") == ["--names a b"]


def test_what_fails_ends_no_other(stand: Stand, capsys: pytest.CaptureFixture[str]) -> None:
    stand.add("fails", "raise SystemExit('/somewhere/private/data.npz: too small')")
    stand.add("silent", "pass")
    stand.add("told", "print('skipped: the model is of another machine')")
    stand.add("wrong", "out.write_text('{\"rows\": []}')")
    stand.add("lacks", WRITES, more='modules=("no_such_module",)')
    (stand.folder / "stand_broken.py").write_text("raise RuntimeError('operator does not exist')")
    stand.modules["broken"] = "stand_broken"
    stand.add("works", WRITES)
    assert stand.gather() == ["fails", "silent", "wrong", "broken"]
    assert stand.entry("broken")["reason"] == "RuntimeError: operator does not exist"
    assert (stand.entry("fails")["status"], stand.entry("fails")["reason"]) == ("failed", "data.npz: too small")
    assert stand.entry("silent")["reason"] == "it wrote no result"
    assert stand.entry("told")["status"] == "skipped"
    assert stand.entry("told")["reason"] == "the model is of another machine"
    assert "no figure 'how many'" in str(stand.entry("wrong")["reason"])
    assert (stand.entry("lacks")["status"], stand.entry("lacks")["reason"]) == ("skipped", "no module no_such_module")
    assert stand.runs("lacks") == [] and stand.entry("works")["status"] == "done"
    assert "1/7 fails: failed: data.npz: too small\n" in capsys.readouterr().out


def test_what_is_done_is_not_done_again(stand: Stand) -> None:
    stand.add("done", WRITES)
    stand.add("failed", "raise SystemExit('once')")
    stand.gather()
    stand.add("failed", WRITES)
    assert stand.gather() == []
    assert (len(stand.runs("done")), len(stand.runs("failed"))) == (1, 2)
    stand.gather(again=True)
    assert (len(stand.runs("done")), len(stand.runs("failed"))) == (2, 3)
    stand.add("done", WRITES, size="--count 3")
    stand.gather()
    assert stand.runs("done") == ["--count 2", "--count 2", "--count 3"]
    content = read_json(stand.path)
    content["benchmarks"]["failed"]["software"] = "nas-ext of last year"
    write_json(stand.path, content)
    stand.gather()
    assert (len(stand.runs("done")), len(stand.runs("failed"))) == (3, 4)


def test_what_takes_too_long_is_ended_with_what_it_started(stand: Stand) -> None:
    sleeper = "import subprocess; print(subprocess.Popen(['sleep', '300']).pid, flush=True); time.sleep(300)"
    stand.add("hangs", sleeper)
    stand.add("works", WRITES)
    begin = time.monotonic()
    assert stand.gather(limit_s=4) == ["hangs"]
    assert time.monotonic() - begin < 100
    assert (stand.entry("hangs")["status"], stand.entry("hangs")["reason"]) == ("cut off", "not done after 4 s")
    child = int((stand.work / "hangs" / "log.txt").read_text().splitlines()[0])
    for _ in range(100):
        status = Path(f"/proc/{child}/stat")
        if not status.exists() or status.read_text().rsplit(")", 1)[1].split()[0] == "Z":
            break
        time.sleep(0.1)
    else:
        raise AssertionError("what it started still runs")


def test_the_file_of_another_machine_is_refused(stand: Stand) -> None:
    stand.add("works", WRITES)
    stand.gather()
    content = read_json(stand.path)
    content["machine"]["cpu"] = "Abacus"
    write_json(stand.path, content)
    with pytest.raises(DataError, match=r"whose cpu is Abacus, this one has .*; give this one another --name"):
        stand.gather()


def command(folder: Path, *arguments: str) -> list[str]:
    places = ["--out", str(folder / "machines"), "--work", str(folder / "work")]
    return [sys.executable, "-m", "benchmarks.brief", *places, *arguments]


def ran(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(folder, *arguments), cwd=ROOT, capture_output=True, text=True, check=False)


def test_the_command(tmp_path: Path) -> None:
    before = (ROOT / "benchmarks" / "results" / "search_throughput.json").read_bytes()
    first = ran(tmp_path, "search_throughput", "search_quality", "--name", "mine")
    assert first.returncode == 0, first.stderr
    assert "1/2 search_throughput: done in" in first.stdout and "2/2 search_quality: skipped: " in first.stdout
    second = ran(tmp_path, "search_throughput", "--name", "mine")
    assert "search_throughput: done before" in second.stdout
    content = read_json(tmp_path / "machines" / "mine.json")
    assert set(content["benchmarks"]) == {"search_throughput", "search_quality"}
    assert (ROOT / "benchmarks" / "results" / "search_throughput.json").read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "told"),
    [(["no_such"], "unknown benchmark 'no_such': expected one of"), (["--name", "../x"], "--name '../x': expected")],
)
def test_wrong_words_are_told_in_one_line(arguments: list[str], told: str, tmp_path: Path) -> None:
    ended = ran(tmp_path, *arguments)
    assert ended.returncode == 2 and told in ended.stderr.splitlines()[-1] and "Traceback" not in ended.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_keeps_what_is_done(number: signal.Signals, tmp_path: Path) -> None:
    process = subprocess.Popen(
        command(tmp_path, "--name", "mine", "search_quality", "search_throughput"), cwd=ROOT, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    log = tmp_path / "work" / "search_throughput" / "log.txt"
    end = time.monotonic() + 120
    while not log.exists() and time.monotonic() < end:
        time.sleep(0.01)
    os.kill(process.pid, number)
    _, told = process.communicate(timeout=60)
    assert process.returncode == 130 and "interrupted; the same command goes on from there" in told
    assert set(read_json(tmp_path / "machines" / "mine.json")["benchmarks"]) == {"search_quality"}
