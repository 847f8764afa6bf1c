"""``nas-ext lab space``."""

from __future__ import annotations

import json

import pytest

from nas_core.cli import main
from nas_core.space import get_space, list_spaces
from nas_core.space.files import space_from_dict

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


@pytest.mark.parametrize("name", ["hat_small", "hat_iwslt14_de_en"])
def test_json_is_the_whole_space(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lab", "space", "show", name, "--json"]) == 0
    assert space_from_dict(json.loads(capsys.readouterr().out)) == get_space(name)
