"""Sections on estimates of supernets: changes and tables follow the figures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.page.document import SECTIONS, sections
from benchmarks.page.pictures import save
from benchmarks.page.results import Results

ABOUT = {
    "measured": {"date": "2026-01-02", "command": "python -m benchmarks supernet_trust bin"},
    "machine": {"cpu": "a CPU", "cores": 2, "threads": 1, "torch": "2.12.0"},
}
ALONE = [
    {"loss": loss, "params_m": size, "genes": {"decoder.arbitrary_cross": reads}}
    for loss, size, reads in ((5.0, 1.0, [-1, 2]), (5.5, 3.0, [1]), (6.0, 2.0, [-1, -1]))
]


def row(method: str, seed: int, error: float, loss: float, sign: int = 1, **more: Any) -> dict[str, Any]:
    routing = None if method in ("SPOS", "sandwich") else {"extremes": 0.125, "mean": 0.0625}
    return {
        "method": method, "seed": seed, "error": error, "tau": 0.5, "bias": sign * error, "inherited_loss": loss,
        "inherited": [loss - 0.5 - error, loss, loss + 0.5 + error],
        "conflict": {"smallest": 0.75, "mean": 0.8}, "routing": routing,
        **more,
    }  # fmt: skip


def on(method: str, seed: int, updates: float) -> dict[str, Any]:
    return {"method": method, "seed": seed, "updates": updates, "reached": 0.5, "networks": [{}, {}]}


def translation() -> dict[str, Any]:
    return {
        **ABOUT, "updates": 900, "tokens": 1024, "standalone": ALONE,
        "rows": [
            row("SPOS", 1, 1.0, 6.5), row("sandwich", 1, 0.2, 5.27, -1), row("sandwich", 2, 0.3, 5.4, -1),
            row("neuron-wise", 1, 0.4, 5.28, -1),
        ],
        "equal_passes": {
            "updates": 300,
            "rows": [
                row("sandwich", 1, 0.5, 6.0), row("sandwich", 2, 0.7, 6.2), row("neuron-wise", 1, 0.3, 5.8),
                row("neuron-wise", 2, 0.3, 5.8), row("near", 1, 0.25, 5.75), row("near", 2, 0.25, 5.75),
                row("far", 1, 0.25, 5.75), row("far", 2, 0.35, 5.85),
            ],
        },
        "further": {
            "every": 50, "most_updates": 500,
            "rows": [on("SPOS", 1, 400), on("sandwich", 1, 300), on("neuron-wise", 1, 200)],
        },
    }  # fmt: skip


def told(anchor: str, folder: Path, **contents: dict[str, Any]) -> str:
    for name, content in contents.items():
        (folder / f"{name}.json").write_text(json.dumps(content))
    return " ".join(SECTIONS[anchor].markdown(Results(folder)).split())


def test_errors_are_compared_seed_by_seed(tmp_path: Path) -> None:
    text = told("estimates-of-supernets", tmp_path, supernet_trust=translation())
    assert "| neuron-wise | 0.400 | +100 % |" in text, "0.4 against the sandwich of the same seed, not of both"
    assert "here the change is +100 % neuron-wise, centred +100 % neuron-wise." in text
    assert "(`decoder.arbitrary_cross`, tau 1.00)" in text and "(tau -0.33 with parameters)" in text
    assert "for some supernets, lower for others" in text
    assert "inherited loss here" in text, "below the mean of both seeds, not below that of its own"
    content = translation()
    content["rows"][3]["inherited_loss"] = 5.25
    text = told("estimates-of-supernets", tmp_path, supernet_trust=content)
    assert "neuron-wise subnets are better than those of the sandwich rule alone, and these are on average" in text
    content["rows"][1]["bias"] = 0.5
    text = told("estimates-of-supernets", tmp_path, supernet_trust=content)
    assert "The inherited loss is lower with neuron-wise experts than without any." in text


def test_parts_that_are_not_measured_are_not_judged(tmp_path: Path) -> None:
    content = translation()
    content["rows"] = content["rows"][:1]
    content["equal_passes"]["rows"] = content["equal_passes"]["rows"][:1]
    content["further"]["rows"] = content["further"]["rows"][1:2]
    assert "the change is not measured yet" in told("estimates-of-supernets", tmp_path, supernet_trust=content)
    assert "every seed" not in told("estimates-at-equal-passes", tmp_path, supernet_trust=content)
    assert "| sandwich | 300 | | 50 % |" in told("further-training", tmp_path, supernet_trust=content)


def test_equal_passes_are_compared_by_themselves(tmp_path: Path) -> None:
    text = told("estimates-at-equal-passes", tmp_path, supernet_trust=translation())
    assert "| neuron-wise | 0.300 ± 0.000 | −50 % |" in text and "have 300 updates" in text
    assert "All inherited losses are higher than standalone ones on average. Against the sandwich rule" in text
    assert "the error by −50 % neuron-wise, the centred error by −50 % neuron-wise, the inherited loss by" in text
    assert "by −4.9 % neuron-wise." in text
    assert "Of what goes beyond it, near has a lower inherited loss than" in text
    assert "than neuron-wise experts with every seed of 2." in text


def test_further_updates_are_compared_with_spos(tmp_path: Path) -> None:
    text = told("further-training", tmp_path, supernet_trust=translation())
    assert "| SPOS | 400 | | 50 % |" in text and "| sandwich | 300 | −25 % | 50 % |" in text
    assert "the change here is −50 % neuron-wise." in text


@pytest.mark.parametrize("part", ["equal_passes", "further"])
def test_a_part_that_was_not_measured_has_no_section(tmp_path: Path, part: str) -> None:
    content = translation()
    (tmp_path / "supernet_trust.json").write_text(json.dumps(content))
    whole = sections(Results(tmp_path))
    del content[part]
    (tmp_path / "supernet_trust.json").write_text(json.dumps(content))
    gone = {"equal_passes": "estimates-at-equal-passes", "further": "further-training"}[part]
    assert set(whole) - set(sections(Results(tmp_path))) == {gone}


@pytest.mark.parametrize("anchor", ["estimates-of-supernets", "estimates-at-equal-passes"])
def test_pictures_are_drawn(tmp_path: Path, anchor: str) -> None:
    (tmp_path / "supernet_trust.json").write_text(json.dumps(translation()))
    picture = SECTIONS[anchor].picture
    assert picture
    save(picture, Results(tmp_path), tmp_path / "a.svg", "its stamp")
    assert b"its stamp" in (tmp_path / "a.svg").read_bytes()


def test_encoders_have_a_table_for_each_corpus(tmp_path: Path) -> None:
    rows = [row("sandwich", 1, 0.2, 4.0, corpus="wikitext2"), row("layer-wise", 1, 0.1, 4.0, corpus="wikitext2")]
    rows += [
        row(method, 1, error, 4.0, corpus="other", inherited=[3.5 - error, 4.0 + error])
        for method, error in (("sandwich", 0.2), ("layer-wise", 0.25))
    ]
    content = {
        **ABOUT, "space": "some_space", "updates": 300, "tokens": 2048, "rows": rows,
        "standalone": {"wikitext2": ALONE, "other": ALONE[:2]},
    }  # fmt: skip
    text = told("estimates-of-bert-supernets", tmp_path, bert_trust=content)
    assert "| WikiText-2 | error |" in text and "| other | error |" in text
    assert "On WikiText-2 standalone losses are 5.000 to 6.000, and to say their average is a centred" in text
    assert "error of 0.333; the error changes by −50 % layer-wise, centred by −50 % layer-wise." in text
    assert "error of 0.250; the error changes by +25 % layer-wise, centred by +25 % layer-wise." in text
    assert "of the space `some_space`: 3 and 2 random networks" in text


@pytest.mark.parametrize("missing", [None, "overhead"])
def test_each_study_has_a_table_of_both_hosts(tmp_path: Path, missing: str | None) -> None:
    gap = {"architectures": 5, "error": 0.25, "tau": None, "bias": -0.125}
    more = {"step_ms_more": 0.25, "pass_ms_more": 0.5, "memory_mb_more": 1, "parameters_m": 2, "plain_parameters_m": 1}
    host = {"gap": {"summary": [gap]}, "overhead": {"summary": [more]}}
    fewer = {name: each for name, each in host.items() if name != missing}
    sizes = {"updates": 150, "tokens": 1024, "images": 2000, "batch": 64, "examples": 500}
    content = {**ABOUT, **sizes, "hosts": {"fairseq": host, "timm": fewer}}
    text = told("studies-of-a-supernet", tmp_path, study_figures=content)
    assert "| translation | 5 | 0.250 | | -0.125 |" in text and "| images | 5 | 0.250 | | -0.125 |" in text
    assert ("| images | 25 | 50 | 100 | 2.00 | 1.00 |" in text) == (missing is None)
