"""``nas-ext`` on language models: measured, searched, reported, extracted and exported."""

from __future__ import annotations

import json

import pytest

from nas_core.cli import main
from nas_core.files import read_json
from nas_core.space import Architecture, save_space
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
    told = []
    metrics = supernet.evaluate(SPACE.smallest(), lambda share, values: told.append((share, dict(values))))
    assert told[-1] == (1.0, metrics)


def test_latency_is_collected_and_fitted(text, tmp_path, capsys):
    save_space(SPACE, tmp_path / "space.yml")
    collect = ["latency", "collect", "--space", tmp_path / "space.yml", "--data", text, *SHORT, "--samples", 24]
    assert main([*map(str, collect), "--out", str(tmp_path / "lat.jsonl")]) == 0
    assert main(["latency", "fit", "--data", str(tmp_path / "lat.jsonl"), "--out", str(tmp_path / "lat.json")]) == 0
    first = json.loads((tmp_path / "lat.jsonl").read_text().splitlines()[0])
    workload = {"kind": "language", "vocab": 16, "prompt_length": 12, "new_tokens": 3, "batch": 1}
    assert first["settings"]["workload"] == workload
    capsys.readouterr()
    wrong = [*map(str, collect), "--out", str(tmp_path / "b.jsonl"), "--workload", "beam=3"]
    assert main(wrong) == 2
    assert "unknown setting of the workload of language networks 'beam'" in capsys.readouterr().err


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
