"""``nas-ext`` on language models: measured, searched, reported, extracted and exported."""

from __future__ import annotations

import json

import pytest

from nas_core.cli import main
from nas_core.models.language.kind import LANGUAGE
from nas_core.models.language.workload import LanguageWorkloadConfig
from nas_core.space import Architecture
from nas_core.supernet import open_supernet
from nas_core.supernet.host import vocabularies
from tests.contracts.host import HostContract
from tests.fairseq_ext.running import LANGUAGE_SPACE as SPACE


class TestLanguageHost(HostContract):
    host = "fairseq"

    @pytest.fixture
    def checkpoint(self, supernet_of):
        return supernet_of("mos_mformer_language_small")


def test_it_is_a_supernet_of_language_models(supernet_of, text):
    supernet = open_supernet(supernet_of("mos_mformer_language_small"), valid_samples=3)
    words = len((text / "dict.txt").read_text().splitlines()) + 4
    assert supernet.space == SPACE and supernet.task == {"kind": "language", "vocab": words}
    assert vocabularies(text) == (words, words)
    assert sum(len(batch["id"]) for batch in supernet.batches()) == 3


def test_a_subnet_is_exported(supernet_of):
    exported = open_supernet(supernet_of("mos_mformer_language_small")).exportable(SPACE.smallest())
    assert [part.name for part in exported.parts] == ["prompt", "decoder_step"] and "dict.txt" in exported.texts
    assert exported.info["limits"] == {"tokens": SPACE.fixed["context_length"]}


LIMITED = {"vocab": 16, "prompt_length": 16, "new_tokens": 8, "batch": 2}
WORKLOAD = [part for name, value in LIMITED.items() for part in ("--workload", f"{name}={value}")]


def test_limits_are_kept_by_all_that_is_evaluated(supernet_of, tmp_path):
    config = LanguageWorkloadConfig(**LIMITED)
    ends = SPACE.smallest(), SPACE.largest()
    memory, cache = (sum(map(cost, ends)) / 2 for cost in (
        lambda end: LANGUAGE.memory_mb(end, config), lambda end: LANGUAGE.cache_mb(end, config)))  # fmt: skip
    search = ["search", "--checkpoint", supernet_of("mos_mformer_language_small"), "--strategy", "random",
              "--set", "evaluations=6", "--valid-samples", 4, "--no-measure", "--finalists", 1,
              "--limit", f"memory_mb={memory}",
              "--limit", f"cache_mb={cache}", *WORKLOAD]  # fmt: skip
    assert main([*map(str, search), "--out", str(tmp_path / "run")]) == 0
    lines = [json.loads(line) for line in (tmp_path / "run" / "journal.jsonl").read_text().splitlines()]
    assert len(lines) == 6
    for line in lines:
        architecture = Architecture(line["genes"])
        assert line["metrics"]["memory_mb"] == LANGUAGE.memory_mb(architecture, config) <= memory
        assert line["metrics"]["cache_mb"] == LANGUAGE.cache_mb(architecture, config) <= cache
