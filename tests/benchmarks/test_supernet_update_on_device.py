"""The cost of a supernet's update on any device, without fairseq: rows, how they are kept, and what is not there."""

import pytest

from benchmarks.supernet import supernet_update
from benchmarks.supernet.supernet_update import main
from nas_core.files.journal import append_jsonl
from nas_core.files.reading import read_json

TINY = ["--size", "tiny", "--repeats", "2"]


def test_each_way_of_training_is_a_row(device, tmp_path):
    out = tmp_path / "supernet_update.json"
    main(["--device", device, *TINY, "--out", str(out)])
    result = read_json(out)
    assert result["machine"]["device"] == device and "without fairseq" in result["what"]
    rows = {tuple(row[name] for name in ("experts", "sampling", "precision")): row for row in result["rows"]}
    assert len(rows) == len(result["rows"]) == 24
    for key, row in rows.items():
        if "absent" in row:
            expected = "tf32 is of NVIDIA devices" if device == "cpu" else f"has no {key[2]}"  # before Ampere
            assert key[2] in ("tf32", "bf16") and expected in row["absent"]
            continue
        assert 0 < row["q25_ms"] <= row["update_ms"] <= row["q75_ms"] and row["tokens_per_s"] > 0, key
        assert (row["peak_gb"] is None) if device == "cpu" else (0 < row["peak_gb"] < 2), key
    assert all(("absent" in row) == (key[2] == "tf32") for key, row in rows.items()) or device != "cpu"
    params = [rows[experts, "spos", "fp32"]["params_m"] for experts in ("none", "layer", "neuron")]
    assert params == sorted(set(params))
    assert not out.with_suffix(".jsonl").exists()


def test_a_run_that_was_stopped_goes_on(device, tmp_path, monkeypatch):
    out, command = tmp_path / "supernet_update.json", ["--device", device, *TINY, "--precision", "fp32", "--out"]
    done = []

    def stopped(case, *rest):
        done.append(case)
        if len(done) == 3:
            raise KeyboardInterrupt
        return {"update_ms": float(len(done))}

    monkeypatch.setattr(supernet_update, "measured", stopped)
    with pytest.raises(KeyboardInterrupt):
        main([*command, str(out)])
    assert [row["update_ms"] for row in read_json(out)["rows"]] == [1.0, 2.0] and len(done) == 3
    main([*command, str(out)])
    assert len(done) == 7 and done[3] == done[2]
    assert [row["update_ms"] for row in read_json(out)["rows"]] == [1.0, 2.0, 4.0, 5.0, 6.0, 7.0]


def test_rows_of_other_settings_are_measured_anew(device, tmp_path, monkeypatch):
    out = tmp_path / "supernet_update.json"
    monkeypatch.setattr(supernet_update, "measured", lambda case, *rest: {"update_ms": 1.0})
    append_jsonl(out.with_suffix(".jsonl"), {"size": "tiny", "experts": "none", "settings": "other"})
    append = supernet_update.append_jsonl
    kept = []
    monkeypatch.setattr(supernet_update, "append_jsonl", lambda path, row: (kept.append(row), append(path, row)))
    main(["--device", device, *TINY, "--precision", "fp32", "--out", str(out)])
    assert len(kept) == 6 == len(read_json(out)["rows"])
