"""Networks of a folder measured a second time."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from nas_core.errors import ConfigError, DataError
from nas_core.latency.by_graph.dataset import collect_networks, measured_again
from nas_core.latency.by_graph.families import Family
from nas_core.report.network_set import agreement
from tests.latency.by_graph.dataset.tiny import CONFIG, ONE, TIMING, TWO, failing

pytestmark = pytest.mark.onnx


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    collect_networks(tmp_path / "set", (ONE, TWO), 6, TIMING, CONFIG, progress=False)
    return tmp_path / "set"


def rewrite(folder: Path, change: object) -> None:
    journal = folder / "dataset.jsonl"
    lines = [json.loads(line) for line in journal.read_text().splitlines()]
    for number, line in enumerate(lines):
        change(number, line)  # type: ignore[operator]
    journal.write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_a_first_measurement_that_was_disturbed_is_seen(folder: Path) -> None:
    def slower(number: int, line: dict) -> None:
        if number:
            line["measured"]["torch"]["relative"] *= 100.0

    rewrite(folder, slower)
    before = (folder / "dataset.jsonl").read_bytes()
    again = measured_again(folder, (ONE, TWO), 4, progress=False)
    assert set(again) == {"onnxruntime", "torch"} and all(ratio.shape == (4,) for ratio in again.values())
    torch_ratio, onnx_ratio = (float(np.median(again[runtime])) for runtime in ("torch", "onnxruntime"))
    assert torch_ratio < 0.1 < onnx_ratio < 100, "a busy machine may be ten times as slow"
    assert (folder / "dataset.jsonl").read_bytes() == before


def test_what_cannot_be_measured_again(folder: Path) -> None:
    with pytest.raises(DataError, match="holds 6 measured networks, 7 were asked for"):
        measured_again(folder, (ONE, TWO), 7)
    with pytest.raises(ConfigError, match="families two, which are missing here"):
        measured_again(folder, (ONE,), 6)

    def elsewhere(number: int, line: dict) -> None:
        if not number:
            line["machine"]["device_name"] = "abacus"

    rewrite(folder, elsewhere)
    with pytest.raises(ConfigError, match="device_name = 'abacus'"):
        measured_again(folder, (ONE, TWO), 2)

    def bare(number: int, line: dict) -> None:
        if not number:
            del line["settings"]["visits"]

    rewrite(folder, bare)
    with pytest.raises(DataError, match="restore its first line"):
        measured_again(folder, (ONE, TWO), 2)


def test_networks_that_fail_now_are_left_out(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    broken = Family("two", "", TWO.sample, failing)
    again = measured_again(folder, (ONE, broken), 6, progress=False)
    assert [len(ratio) for ratio in again.values()] == [3, 3] and "two_0000 cannot be measured again" in caplog.text
    with pytest.raises(DataError, match=r"no network of .* can be measured again, .* no network of width"):
        measured_again(folder, (Family("one", "", ONE.sample, failing), broken), 6, progress=False)


def test_the_line_says_shift_and_spread() -> None:
    text = agreement({"torch": np.array([1.1, 1.1, 1.1, 1.155])})
    assert text.startswith("torch: 4 networks differ by +10.0 % from before (median), two thirds are within 0.")
