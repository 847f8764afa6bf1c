"""``nas-ext lab proxies``: resumed scores, and rejected inputs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nas_core.cli import main
from nas_core.files.journal import read_jsonl

SPACE = """
fixed: {image_size: 8, patch_size: 4, head_dim: 4, relative_clip: 1}
choices:
  layers: [1, 2]
  embed_dim: [8, 12]
  ffn_dim: {options: [8, 16], per: layers}
  heads: {options: [1, 2], per: layers}
"""
CELL = "|nor_conv_1x1~0|+|none~0|none~1|+|skip_connect~0|none~1|none~2|"


@pytest.fixture
def space(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    Path("tiny.yml").write_text(SPACE, encoding="utf-8")
    return "tiny.yml"


def proxies(*arguments: str) -> int:
    return main(["lab", "proxies", "--batch", "2", "--proxy", "nwot", "--proxy", "params", *arguments])


def test_more_samples_go_on_where_the_file_ends(space: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert proxies("--space", space, "--samples", "3", "--out", "a.jsonl") == 0
    before = Path("a.jsonl").read_text(encoding="utf-8")
    assert proxies("--space", space, "--samples", "5", "--out", "a.jsonl") == 0
    assert Path("a.jsonl").read_text(encoding="utf-8").startswith(before)
    records = read_jsonl("a.jsonl")
    assert len({json.dumps(record["architecture"]) for record in records}) == len(records) == 5
    assert all(list(record["proxies"]) == ["nwot", "params"] for record in records)
    assert "5 networks of tiny.yml, 3 of them scored before: a.jsonl" in capsys.readouterr().out
    assert proxies("--space", space, "--data", "a.jsonl", "--out", "b.jsonl") == 0
    assert read_jsonl("b.jsonl") == records


def test_other_settings_need_another_file(space: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert proxies("--space", space, "--samples", "2", "--out", "a.jsonl") == 0
    before = Path("a.jsonl").read_bytes()
    for more in (["--seed", "1"], ["--proxy", "flops"], ["--workload", "classes=3"]):
        assert proxies("--space", space, "--samples", "2", "--out", "a.jsonl", *more) == 2
        assert "give the same settings to continue, or another file" in capsys.readouterr().err
    assert Path("a.jsonl").read_bytes() == before


def test_cells_of_nasbench201(space: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("cells.jsonl").write_text(
        "".join(json.dumps({"architecture": each}) + "\n" for each in (CELL, [2, 0, 0, 1, 0, 0])), encoding="utf-8"
    )
    assert (
        main(
            [
                "lab",
                "proxies",
                "--space",
                "nasbench201",
                "--data",
                "cells.jsonl",
                "--proxy",
                "params",
                "--out",
                "o.jsonl",
            ]
        )
        == 0
    )
    (record,) = read_jsonl("o.jsonl")  # both are the same cell
    assert record["architecture"] == CELL and record["proxies"] == {"params": 101_306.0}
    assert (
        main(["lab", "proxies", "--space", "nasbench201", "--samples", "1", "--workload", "x=1", "--out", "p.jsonl"])
        == 2
    )
    assert "has no effect with --space" in capsys.readouterr().err
