"""Pictures and tables of architectures, layer by layer."""

from __future__ import annotations

from nas_core.cli import main
from nas_core.report import plots
from nas_core.report.architecture import architecture_picture, layers_table
from nas_core.space import Architecture
from nas_core.space.mformer import found_translation

PNG = b"\x89PNG\r\n\x1a\n"


def test_the_table_has_a_row_for_each_layer_of_each_side():
    lines = layers_table(found_translation("mformer")).text().splitlines()
    assert lines[0].split() == [
        "side", "layer", "ffn_dim", "self_attention", "self_heads", "encoder", "layers", "read", "cross_heads"
    ]  # fmt: skip
    assert [line.split()[:2] for line in lines[2:]] == [["encoder", str(i)] for i in range(1, 7)] + [
        ["decoder", "1"],
        ["decoder", "2"],
    ]
    assert lines[3].split()[3] == "linear" and lines[-1].split()[3:6] == ["-", "16", "1"]


def test_the_picture_shows_every_gene(monkeypatch):
    figures = []
    original = plots.png
    monkeypatch.setattr(
        "nas_core.report.architecture.png", lambda figure: (figures.append(figure), original(figure))[1]
    )
    one_side = Architecture(
        {"layers": 3, "embed_dim": 64, "heads": [3, 2, 2], "attention": ["softmax", "linear", "linear"]}
    )
    assert architecture_picture({"mine": one_side}).startswith(PNG)
    axes = figures[0].axes
    assert [each.get_ylabel() for each in axes] == ["attention", "heads"] and axes[0].get_title() == "mine"
    assert [text.get_text() for text in axes[0].texts] == ["S", "L", "L"]
    assert [bar.get_height() for bar in axes[1].patches] == [3, 2, 2]
    colours = [bar.get_facecolor() for bar in axes[0].patches]
    legend = {text.get_text(): patch.get_facecolor() for text, patch in zip(
        figures[0].legends[0].get_texts(), figures[0].legends[0].get_patches(), strict=True
    )}  # fmt: skip
    assert colours == [legend["softmax"], legend["linear"], legend["linear"]]
    huge = Architecture({"layers": 2, "heads": [10**30, 2]})
    assert architecture_picture({"": huge}).startswith(PNG)
    assert [bar.get_height() for bar in figures.pop().axes[0].patches] == [1e30, 2]
    architectures = {"a": found_translation("mformer"), "b": found_translation("transformer")}
    assert architecture_picture(architectures).startswith(PNG)
    assert len(figures[1].axes) == 4 * 5


def test_the_command(tmp_path, capsys):
    file = tmp_path / "a.json"
    found_translation("mformer").save(file)
    assert main(["report", "architecture", str(file)]) == 0
    assert (tmp_path / "a.png").read_bytes().startswith(PNG)
    assert "linear" in capsys.readouterr().out
    twins = [tmp_path / folder / "b.json" for folder in ("one", "two")]
    for twin in twins:
        found_translation("mformer").save(twin)
    Architecture({"embed_dim": 3}).save(tmp_path / "flat.json")
    for arguments, value in (
        ([file], "--force"),
        ([file, "--out", tmp_path / "a.pdf"], ".png"),
        ([tmp_path / "none.json"], "none.json"),
        ([*twins, "--out", tmp_path / "all.png"], "'b'"),
        ([tmp_path / "flat.json"], "layer"),
    ):
        assert main(["report", "architecture", *map(str, arguments)]) == 2
        error = capsys.readouterr().err
        assert value in error and len(error.splitlines()) == 1
    assert main(["report", "architecture", str(file), "--force"]) == 0
