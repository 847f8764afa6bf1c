"""``nas-ext`` on language models: measured, searched, reported, extracted and exported."""

from __future__ import annotations

import json

import pytest
import yaml

from nas_core.cli import main
from nas_core.files.reading import read_json
from nas_core.models.language.kind import LANGUAGE
from nas_core.models.language.workload import LanguageWorkloadConfig
from nas_core.space import Architecture
from nas_core.supernet import open_supernet
from nas_core.supernet.host import Supernet, vocabularies
from tests.contracts.host import HostContract
from tests.fairseq_ext.language.tiny import CONTEXT, SPACE

SHORT = ["--workload", "prompt_length=12", "--workload", "new_tokens=3", "--repeats", 2, "--warmup", 1]


class TestLanguageHost(HostContract):
    host = "fairseq"

    @pytest.fixture
    def checkpoint(self, supernet_of):
        return supernet_of("mos_mformer_language_small")


def test_it_is_a_supernet_of_language_models(supernet_of, text):
    supernet = open_supernet(supernet_of("mos_mformer_language_small"))
    words = len((text / "dict.txt").read_text().splitlines()) + 4
    assert isinstance(supernet, Supernet) and supernet.space == SPACE
    assert supernet.task == {"kind": "language", "vocab": words}
    assert vocabularies(text) == (words, words)
    part = open_supernet(supernet_of("mos_mformer_language_small"), valid_sentences=3)
    assert sum(len(batch["id"]) for batch in part.batches()) == 3
    reports = []
    metrics = supernet.evaluate(SPACE.smallest(), lambda share, values: reports.append((share, dict(values))))
    assert reports[-1] == (1.0, metrics)


def test_a_search_ends_in_a_report_and_files(supernet_of, tmp_path):
    checkpoint, run = supernet_of("mos_mformer_language_small"), tmp_path / "run"
    search = ["search", "--checkpoint", checkpoint, "--strategy", "random", "--set", "evaluations=4",
              "--valid-sentences", 8,
              "--limit", "params_m=0.006", "--no-measure", "--finalists", 1, "--out", run]  # fmt: skip
    assert main(list(map(str, search))) == 0
    (found,) = (run / "finalists").glob("*.json")
    assert SPACE.validate(Architecture.load(found))
    assert main(["report", str(run)]) == 0
    assert (
        main(["extract", "--checkpoint", str(checkpoint), "--arch", str(found), "--out", str(tmp_path / "s.pt")]) == 0
    )
    pytest.importorskip("onnxscript", reason="onnxscript is not installed")
    assert main(["export", "--checkpoint", str(tmp_path / "s.pt"), "--out", str(tmp_path / "onnx")]) == 0
    model = read_json(tmp_path / "onnx" / "model.json")
    assert set(model["parts"]) == {"prompt", "decoder_step"} and model["limits"] == {"tokens": CONTEXT}
    assert "dict.txt" in model["files"]


LIMITED = {"vocab": 16, "prompt_length": 16, "new_tokens": 8, "batch": 2}
WORKLOAD = [part for name, value in LIMITED.items() for part in ("--workload", f"{name}={value}")]


def test_limits_are_kept_by_all_that_is_evaluated(supernet_of, tmp_path, capsys):
    config = LanguageWorkloadConfig(**LIMITED)
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
    assert yaml.safe_load((tmp_path / "run" / "config.yaml").read_text())["settings"]["workload"] == LIMITED
    lines = [json.loads(line) for line in (tmp_path / "run" / "journal.jsonl").read_text().splitlines()]
    assert len(lines) == 6
    for line in lines:
        found = Architecture(line["genes"])
        assert line["metrics"]["memory_mb"] == LANGUAGE.memory_mb(found, config) <= memory
        assert line["metrics"]["cache_mb"] == LANGUAGE.cache_mb(found, config) <= cache
    wrong = [
        (["--limit", "cache_mb=0.000001"], "lowest values reached: cache_mb"),
        (["--limit", "memory_mb=1", "--workload", "beam=4"], "unknown setting of the workload of language networks"),
        (["--limit", "cache_mb=1", "--workload", "prompt_length=0"], "prompt_length is 0, expected at least 1"),
    ]
    for limit, part in wrong:
        common = ["--checkpoint", str(supernet_of("mos_mformer_language_small")), "--strategy", "random"]
        assert main(["search", *common, "--out", str(tmp_path / "none"), *limit]) == 2
        error = capsys.readouterr().err.strip()
        assert part in error and "\n" not in error and not (tmp_path / "none").exists()
