"""Cost of a supernet's update on any device, without fairseq."""

from benchmarks.supernet.supernet_update import main
from nas_core.files.reading import read_json

TINY = ["--size", "tiny", "--repeats", "2", "--precision", "fp32", "tf32"]


def test_one_row_per_training(device, tmp_path):
    out = tmp_path / "supernet_update.json"
    main(["--device", device, *TINY, "--out", str(out)])
    result = read_json(out)
    assert result["machine"]["device"] == device
    rows = {tuple(row[name] for name in ("experts", "sampling", "precision")): row for row in result["rows"]}
    assert len(rows) == len(result["rows"]) == 12
    for key, row in rows.items():
        if "absent" in row:
            expected = "tf32 needs an NVIDIA GPU" if device == "cpu" else f"{key[2]} needs 8.0"  # before Ampere
            assert key[2] in ("tf32", "bf16") and expected in row["absent"]
            continue
        assert 0 < row["q25_ms"] <= row["update_ms"] <= row["q75_ms"] and row["tokens_per_s"] > 0, key
        assert (row["peak_gb"] is None) if device == "cpu" else (0 < row["peak_gb"] < 2), key
    assert all(("absent" in row) == (key[2] == "tf32") for key, row in rows.items()) or device != "cpu"
    params = [rows[experts, "spos", "fp32"]["params_m"] for experts in ("none", "layer", "neuron")]
    assert params == sorted(set(params))
