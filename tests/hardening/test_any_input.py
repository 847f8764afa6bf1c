"""Whatever a file holds, a command ends in a result or in one line, leaves the file alone, and takes no memory for it.

Every command meets files with odd values, flipped bits and missing ends. ``NAS_EXT_HARDENING=2000`` (``make nightly``)
tries that many; without it they are 300. A failure names the seed, and ``NAS_EXT_HARDENING_SEED`` begins with another.
"""

from __future__ import annotations

import contextlib
import os
import random
import resource
import shutil
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from nas_core.cli import main
from nas_core.supernet import host
from tests.cli.searching import SPACE, score
from tests.hardening.damage import damaged
from tests.hardening.inputs import make_inputs
from tests.toys import ToySupernet

COUNT = int(os.environ.get("NAS_EXT_HARDENING", "300"))
SEED = int(os.environ.get("NAS_EXT_HARDENING_SEED", "1"))
MEMORY = 2 * 2**30
HANG_S = 60
"""Of processor time for one input"""


@dataclass(frozen=True)
class Case:
    """A command, and the file that is damaged before it."""

    name: str
    file: str
    """Of the inputs; in a folder such as ``run/journal.jsonl``, ``{file}`` is a copy of the folder that holds it"""
    arguments: str
    """``{file}`` is the damaged one, ``{inputs}`` the folder of whole files, ``{out}`` a folder for what it writes"""
    share: int = 3
    """Share of the damaged files that this command reads; slow commands get few."""
    needs: str = ""
    """A module that may be absent"""


_PREDICT = "lab predictor predict --model"
_CALIBRATE = "lab calibrate --supernet {inputs}/a.json --metric bleu --out {out}/c.safetensors --trained"
_FEW = "--strategy random --set evaluations=4 --finalists 1 --no-measure"
_SEARCH = f"search --checkpoint {{inputs}}/a.json --out {{out}}/run {_FEW}"
_DATASET = "latency dataset --device other --networks 1 --out {out}/set --from-timm"

CASES = (
    Case("space show", "space.yml", "lab space show {file}", 6),
    Case("space export", "space.yml", "lab space export {file} --format nni --out {out}/s.json", 2, "nni"),
    Case("report architecture", "a.json", "report architecture {file}", 2),
    Case("latency fit", "measured.jsonl", "latency fit --data {file} --out {out}/m.json", 6),
    Case("latency fit, CSV", "hat.csv", "latency fit --data {file} --out {out}/m.json", 4),
    Case("latency check", "latency.json", "latency check --model {file} --data {inputs}/measured.jsonl", 6),
    Case("predictor train", "graphs.jsonl", "lab predictor train --data {file} --out {out}/p.safetensors", 2),
    Case("predictor predict", "graphs.jsonl", f"{_PREDICT} {{inputs}}/predictor.safetensors --data {{file}}", 4),
    Case("predictor file", "predictor.safetensors", f"{_PREDICT} {{file}} --data {{inputs}}/graphs.jsonl", 6),
    Case("prior", "cells.jsonl", f"{_PREDICT} prior --reader nasbench201 --data {{file}}", 2),
    Case("calibrate", "trained.jsonl", f"{_CALIBRATE} {{file}}", 6),
    Case("calibration", "calibration.safetensors", f"{_SEARCH} --limit params_m=9 --calibration {{file}}", 4),
    Case("search", "latency.json", f"{_SEARCH} --limit latency_ms=3 --latency-model {{file}}", 3),
    Case("search goes on", "searched/run/journal.jsonl", _SEARCH.replace("{out}", "{file}") + " --limit params_m=9", 3),
    Case("search settings", "searched/run/config.yaml", _SEARCH.replace("{out}", "{file}") + " --limit params_m=9", 3),
    Case("report", "run/journal.jsonl", "report {file}", 1),
    Case("report, finalists", "run/finalists.json", "report {file}", 1),
    Case("report, settings", "run/config.yaml", "report {file}", 1),
    Case("latency train", "networks.npz", "latency train --data {file} --model counts --out {out}/m.safetensors"
         " --runtime onnxruntime", 6, "onnx"),
    Case("latency predict", "net.onnx", "latency predict {file} --model {inputs}/networks.safetensors", 12, "onnx"),
    Case("network model", "networks.safetensors", "latency predict {inputs}/net.onnx --model {file}", 6, "onnx"),
    Case("latency dataset", "published.csv", f"{_DATASET} {{file}}", 2, "timm"),
    Case("extract, images", "images.pt", "extract --checkpoint {file} --arch smallest --out {out}/s.pt", 14, "timm"),
    Case("elastic", "vit.pt", "elastic --checkpoint {file} --importance none --out {out}/e.pt", 14, "timm"),
    Case("extract, translation", "translation.pt", "extract --checkpoint {file} --arch smallest --out {out}/s.pt", 14,
         "fairseq"),
    Case("architecture of an extraction", "a.json", "extract --checkpoint {inputs}/translation.pt --arch {file}"
         " --out {out}/s.pt", 3, "fairseq"),
)  # fmt: skip

pytestmark = [
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.timeout(60 + COUNT),
]


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    with pytest.MonkeyPatch.context() as monkeypatch:
        return make_inputs(tmp_path_factory.mktemp("inputs"), monkeypatch)


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> None:
    """A supernet without weights answers for files whose name says so; others are opened by their hosts."""
    opened, result = ToySupernet(SPACE, score, {"kind": "translation"}), host.open_supernet

    def open_supernet(path: str | Path, **options: Any) -> Any:
        return opened if Path(path).suffix == ".json" else result(path, **options)

    monkeypatch.setattr("nas_core.supernet.host.open_supernet", open_supernet)


@pytest.fixture
def limited_memory() -> Iterator[None]:
    """Limit the memory of this process to 2 GB more than it has."""
    with open("/proc/self/statm", encoding="ascii") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    limits = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)


@contextlib.contextmanager
def limited_time() -> Iterator[None]:
    """Fail after ``HANG_S`` of processor time.

    The timer ends with the block: without a handler, its signal would end this process in a later test.
    """

    def hang(*_: Any) -> None:
        raise AssertionError(f"this input takes more than {HANG_S} s")

    before = signal.signal(signal.SIGVTALRM, hang)
    signal.setitimer(signal.ITIMER_VIRTUAL, HANG_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def shares() -> list[Any]:
    """Each command with how many inputs it gets."""
    full = sum(case.share for case in CASES)
    return [pytest.param(case, max(1, round(COUNT * case.share / full)), id=case.name) for case in CASES]


@pytest.mark.parametrize(("case", "count"), shares())
def test_any_input_ends_in_a_result_or_one_line(
    case: Case,
    count: int,
    inputs: Path,
    tmp_path: Path,
    toy: None,
    limited_memory: None,
    capfd: pytest.CaptureFixture[str],
) -> None:
    if case.needs and find_spec(case.needs) is None:
        pytest.skip(f"{case.needs} is not installed")
    ends = [one_input(case, number, inputs, tmp_path, capfd) for number in range(count)]
    assert set(ends) <= {0, 2} and len(ends) == count


def one_input(case: Case, number: int, inputs: Path, folder: Path, capfd: pytest.CaptureFixture[str]) -> int:
    """Return the exit code of the command on one damaged file."""
    place = folder / str(number)
    place.mkdir()
    *within, name = case.file.split("/")
    source = place / "given" / within[0] if within else place / f"given{Path(name).suffix}"
    if within:
        shutil.copytree(inputs / within[0], source)
    file = Path(source, *within[1:], name) if within else source
    content = damaged(inputs / case.file, random.Random(f"{SEED}-{case.name}-{number}"))
    file.write_bytes(content)
    words = [word.format(file=source, inputs=inputs, out=place) for word in case.arguments.split()]
    description = f"seed {SEED}, input {number}, kept in {file}"
    try:
        with limited_time():
            code = main(words)
    except BaseException as error:
        error.add_note(description)
        raise
    err = capfd.readouterr().err
    errors = [line for line in err.splitlines() if line.startswith("nas-ext: error:")]
    assert code in (0, 2) and (code == 0 or len(errors) == 1 or "Usage:" in err), f"{description}: {code} {err[-2000:]}"
    assert "Traceback" not in err, f"{description}: {err[-3000:]}"
    if not within:
        assert file.read_bytes() == content, description
    assert not [path for path in place.rglob("*.part")], description
    for page in place.rglob("*.html"):
        assert "alert(1)</script>" not in page.read_text(encoding="utf-8"), description
    shutil.rmtree(place)
    return code
