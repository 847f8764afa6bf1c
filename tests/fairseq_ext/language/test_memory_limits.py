"""``nas-ext search`` of language models within limits on memory and on the decoding cache."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from nas_core.cli import main
from nas_core.models.language import LanguageWorkloadConfig
from nas_core.models.language.kind import LANGUAGE
from nas_core.space import Architecture
from tests.fairseq_ext.language.tiny import SPACE

SETTINGS = {"vocab": 16, "prompt_length": 16, "new_tokens": 8, "batch": 2}
WORKLOAD = [part for name, value in SETTINGS.items() for part in ("--workload", f"{name}={value}")]


def test_limits_are_kept_by_all_that_is_evaluated(
    supernet_of: Callable[[str], Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = LanguageWorkloadConfig(**SETTINGS)
    ends = SPACE.smallest(), SPACE.largest()
    memory, cache = (sum(map(cost, ends)) / 2 for cost in (
        lambda end: LANGUAGE.memory_mb(end, config), lambda end: LANGUAGE.cache_mb(end, config)))  # fmt: skip
    search = ["search", "--checkpoint", supernet_of("mos_mformer_language_small"), "--strategy", "random",
              "--set", "evaluations=6", "--valid-sentences", 4, "--no-measure", "--finalists", 1,
              "--limit", f"memory_mb={memory}",
              "--limit", f"cache_mb={cache}", *WORKLOAD]  # fmt: skip
    assert main([*map(str, search), "--out", str(tmp_path / "run")]) == 0
    table = capsys.readouterr().out
    assert "memory (MB)" in table and "cache (MB)" in table
    assert yaml.safe_load((tmp_path / "run" / "config.yaml").read_text())["settings"]["workload"] == SETTINGS
    lines = [json.loads(line) for line in (tmp_path / "run" / "journal.jsonl").read_text().splitlines()]
    assert len(lines) == 6
    for line in lines:
        found = Architecture(line["genes"])
        assert line["metrics"]["memory_mb"] == LANGUAGE.memory_mb(found, config) <= memory
        assert line["metrics"]["cache_mb"] == LANGUAGE.cache_mb(found, config) <= cache


@pytest.mark.parametrize(
    ("limit", "said"),
    [
        (["--limit", "cache_mb=0.000001"], "lowest values reached: cache_mb"),
        (["--limit", "memory_mb=1", "--workload", "beam=4"], "unknown setting of the workload of language networks"),
        (["--limit", "cache_mb=1", "--workload", "prompt_length=0"], "prompt_length is 0, expected at least 1"),
    ],
)
def test_wrong_limits_are_one_line(
    supernet_of: Callable[[str], Path], limit: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    search = ["search", "--checkpoint", str(supernet_of("mos_mformer_language_small")), "--strategy", "random"]
    assert main([*search, "--out", str(tmp_path / "run"), *limit]) == 2
    error = capsys.readouterr().err.strip()
    assert said in error and "\n" not in error
    assert not (tmp_path / "run").exists()
