"""``nas-ext search`` with each strategy: its numbers, what it says of them, and its files."""

from __future__ import annotations

import itertools
import json
from dataclasses import asdict
from pathlib import Path

import pytest
import yaml

from nas_core.models import kind_of
from nas_core.models.translation.workload import TranslationWorkloadConfig
from nas_core.space import Architecture
from tests.cli.searching import SPACE, WORKLOAD, Search
from tests.toys import ToySupernet


def test_ranknas_with_its_budget(run: Search, tmp_path: Path, supernet: ToySupernet) -> None:
    small = ["--set", "samples=20", "--set", "rounds=2", "--set", "per_round=5"]
    assert run("--strategy", "ranknas", *small, limits=False) == 0
    assert len(supernet.evaluated) == 20 + 2 * 5
    searches = yaml.safe_load((tmp_path / "run" / "config.yaml").read_text())["settings"]["searches"]
    (settings,) = searches.values()
    assert (settings["strategy"], settings["samples"], settings["keep_genes"]) == ("ranknas", 20, 0)
    repeated = len(supernet.evaluated)
    assert run("--strategy", "ranknas", *small, limits=False) == 0
    assert len(supernet.evaluated) == repeated  # all were read from the journal


def test_few_evaluations_choose_the_strategy(
    run: Search, tmp_path: Path, supernet: ToySupernet, capsys: pytest.CaptureFixture[str]
) -> None:
    model = ["--latency-model", str(tmp_path / "latency.json"), "--no-measure", "--evaluations", "14"]
    for limit, out in (([], "front"), (["--limit", "latency_ms=2.6"], "limited"), (["--limit", "params_m=1"], "small")):
        assert run(*model, *limit, limits=False, out=out) == 0
    named = {}
    for out in ("front", "limited", "small"):
        settings = yaml.safe_load((tmp_path / out / "config.yaml").read_text())["settings"]
        named[out] = [(search["strategy"], search.get("objectives")) for search in settings["searches"].values()]
    both = ["loss", "latency_ms"]
    assert named == {"front": [("hypervolume", both)], "limited": [("ranknas", None)], "small": [("hypervolume", both)]}
    assert 14 <= len(supernet.evaluated) <= 3 * 14
    assert run("--strategy", "hypervolume", "--evaluations", "12", limits=False, out="costs") == 0
    settings = yaml.safe_load((tmp_path / "costs" / "config.yaml").read_text())["settings"]
    assert settings["searches"]["unlimited"]["objectives"] == ["loss", "params_m"]
    assert run("--evaluations", "12", "--set", "samples=5", limits=False, out="other") == 2
    assert "samples" in capsys.readouterr().err


def test_memory_and_cache_are_limits_like_others(
    run: Search, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """They are counted as the latency model was measured, but for what is given."""
    small = ["--strategy", "random", "--set", "evaluations=12", "--limit", "memory_mb=0.1", "--limit", "cache_mb=0.01"]
    assert run(*small, "--workload", "beam=4", "--no-measure") == 0
    content = yaml.safe_load((tmp_path / "run" / "config.yaml").read_text())["settings"]
    assert content["workload"] == {**asdict(WORKLOAD), "beam": 4}
    assert next(iter(content["searches"])).endswith("memory_mb<=0.1 cache_mb<=0.01")
    lines = [json.loads(line) for line in (tmp_path / "run" / "journal.jsonl").read_text().splitlines()]
    kind, config = kind_of(SPACE), TranslationWorkloadConfig(**content["workload"])
    for line in lines:
        architecture = Architecture(line["genes"])
        assert line["metrics"]["memory_mb"] == kind.memory_mb(architecture, config) <= 0.1
        assert line["metrics"]["cache_mb"] == kind.cache_mb(architecture, config) <= 0.01
    table = capsys.readouterr().out
    assert "memory (MB)" in table and "cache (MB)" in table and "≤ 0.1 MB memory, ≤ 0.01 MB cache" in table
    assert run(*small, "--workload", "beam=3", "--no-measure") == 2
    assert "workload" in capsys.readouterr().err


def test_one_search_for_the_whole_front(run: Search, tmp_path: Path, supernet: ToySupernet) -> None:
    model = ["--latency-model", str(tmp_path / "latency.json"), "--no-measure"]
    assert run("--strategy", "multi-objective", *model, limits=False) == 0
    assert len(supernet.evaluated) <= 4 + 2 * 12
    settings = yaml.safe_load((tmp_path / "run" / "config.yaml").read_text())["settings"]
    assert settings["objectives"] == ["loss", "latency_ms"]
    assert settings["searches"]["unlimited"]["objectives"] == ["loss", "latency_ms"]
    finalists = json.loads((tmp_path / "run" / "finalists.json").read_text())["finalists"]
    pairs = sorted((f["metrics"]["latency_ms"], f["metrics"]["loss"]) for f in finalists)
    assert len(pairs) == 4
    assert all(a[1] > b[1] for a, b in itertools.pairwise(pairs))  # slower ones are better: a front
