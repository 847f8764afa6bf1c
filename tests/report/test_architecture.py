"""Tables of architectures, layer by layer."""

from __future__ import annotations

from nas_core.cli import main
from nas_core.report.architecture import layers_table
from nas_core.space import Architecture
from nas_core.space.mformer import published_translation


def test_the_table_has_a_row_for_each_layer_of_each_side():
    lines = layers_table(published_translation("mformer")).text().splitlines()
    assert lines[0].split() == [
        "side", "layer", "ffn_dim", "self_attention", "self_heads", "encoder", "layers", "read", "cross_heads"
    ]  # fmt: skip
    assert [line.split()[:2] for line in lines[2:]] == [["encoder", str(i)] for i in range(1, 7)] + [
        ["decoder", "1"],
        ["decoder", "2"],
    ]
    assert lines[3].split()[3] == "linear" and lines[-1].split()[3:6] == ["-", "16", "1"]


def test_the_command(tmp_path, capsys):
    file = tmp_path / "a.json"
    published_translation("mformer").save(file)
    assert main(["report", "architecture", str(file)]) == 0
    assert "linear" in capsys.readouterr().out
    Architecture({"embed_dim": 3}).save(tmp_path / "flat.json")
    for wrong, value in ((tmp_path / "none.json", "none.json"), (tmp_path / "flat.json", "layer")):
        assert main(["report", "architecture", str(wrong)]) == 2
        error = capsys.readouterr().err
        assert value in error and len(error.splitlines()) == 1
