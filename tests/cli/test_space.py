"""``nas-ext lab space``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nas_core.cli import main
from nas_core.space import Choice, SearchSpace, get_space, list_spaces, save_space, space_from_dict

PRESETS = ("hat_wmt14_en_de", "hat_wmt14_en_fr", "hat_wmt19_en_de", "hat_iwslt14_de_en")


def test_list_shows_every_space_with_its_task_size_and_models(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lab", "space", "list"]) == 0
    _, *rows, _ = capsys.readouterr().out.splitlines()
    lines = {line.split()[0]: line.split(maxsplit=3)[1:] for line in rows}
    assert list(lines) == list_spaces()
    assert {(lines[name][0], lines[name][1]) for name in PRESETS} == {("translation", "4.2e+14")}
    assert lines["hat_small"] == ["translation", "41,461,632", "hat_transformer_small, mos_transformer_small"]
    assert lines["mformer_cifar10_small"][0] == "image" and lines["hat_wmt19_en_de"][2] == "-"


def test_show_has_choices_size_and_parameters(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lab", "space", "show", "hat_wmt14_en_de"]) == 0
    out = capsys.readouterr().out
    assert "hat_wmt14_en_de: 417,846,678,672,384 architectures (10^14.6)" in out
    for name in (choice.name for choice in get_space("hat_wmt14_en_de").choices):
        assert name in out
    assert "[3072, 2048, 1024]  for each of encoder.layers" in out
    assert "512 (fixed)" in out
    assert "15.77 to 70.90 M" in out


def test_show_says_what_decoding_keeps(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lab", "space", "show", "hat_small"]) == 0
    assert "decoding cache: 0.31 to 1.84 MB" in capsys.readouterr().out
    assert main(["lab", "space", "show", "language_small"]) == 0
    assert "decoding cache: 0.16 to 0.66 MB" in capsys.readouterr().out  # 2 * 2 * 64 and 4 * 2 * 128 at 160 positions
    assert main(["lab", "space", "show", "roberta_small"]) == 0
    shown = capsys.readouterr().out
    assert "memory of a pass: " in shown and "vocab 50265" in shown and "cache" not in shown


@pytest.mark.parametrize("name", ["hat_small", "hat_iwslt14_de_en"])
def test_json_is_the_whole_space(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lab", "space", "show", name, "--json"]) == 0
    assert space_from_dict(json.loads(capsys.readouterr().out)) == get_space(name)


def test_show_reads_a_file_of_any_kind_of_space(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    depth = Choice.make("layers", [1, 2])
    save_space(SearchSpace("mine", [depth, Choice.make("width", [[4, 8], [8]], "layers", 2)]), tmp_path / "mine.yml")
    assert main(["lab", "space", "show", str(tmp_path / "mine.yml")]) == 0
    out = capsys.readouterr().out
    assert "mine: 4 architectures" in out
    assert "[4, 8] / [8]  for each of layers" in out
    assert "parameters" not in out


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "mine.yml"),
        ("name: [", "mine.yml"),
        ("choices: {}\nname: x\n", "choice"),
        ("- 1\n- 2\n", "mine.yml"),
    ],
)
def test_wrong_files_are_one_line(
    content: str | None, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "mine.yml"
    if content is not None:
        path.write_text(content)
    assert main(["lab", "space", "show", str(path)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("nas-ext: error: ")
    assert said in line


def test_an_unknown_space_is_named_with_the_closest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lab", "space", "show", "hat_smal"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "unknown search space 'hat_smal'" in line
    assert "Did you mean 'hat_small'?" in line
