"""Sections on trained networks appear with their results, and say what stands in them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from benchmarks.page.document import SECTIONS, sections
from benchmarks.page.pictures import save
from benchmarks.page.results import FOLDER, Results
from benchmarks.page.sections.trained import FULL, HALF, NO_TEACHER, NOT_SORTED, SHALLOW

RANDOM = "from random weights"
ABOUT = {
    "measured": {"date": "2026-01-02", "command": "python -m benchmarks elastic_translation bin"},
    "machine": {"cpu": "a CPU", "cores": 2, "threads": 1, "torch": "2.12.0"},
}


def ablations(score: str, values: dict[tuple[str, str, int, int], float]) -> list[dict[str, Any]]:
    """Rows by (supernet, subnet, updates, seed)."""
    names = ("supernet", "subnet", "updates", "seed")
    return [{**dict(zip(names, at, strict=True)), score: value, "params_m": 1.0} for at, value in values.items()]


SCORES = {
    (FULL, "largest", 300, 1): 36.6, (FULL, HALF, 300, 1): 35.0, (FULL, HALF, 300, 2): 35.4,
    (FULL, "smallest", 300, 1): 31.0, (NO_TEACHER, HALF, 300, 1): 33.2, (NO_TEACHER, HALF, 300, 2): 33.4,
    (NOT_SORTED, HALF, 300, 1): 34.1, (NOT_SORTED, HALF, 300, 2): 34.3, (FULL, HALF, 0, 1): 12.25,
    (RANDOM, HALF, 300, 1): 9.5, (RANDOM, HALF, 700, 1): 21.5,
}  # fmt: skip


def made_up() -> dict[str, dict[str, Any]]:
    translation = ablations("bleu", SCORES)
    for row, ms in zip(translation[:3], (None, 4.75, None), strict=True):
        row |= {"limit_ms": 5.0, "measured_ms": ms} if ms else {}
    tight = {"supernet": FULL, "subnet": "35% of its latency", "updates": 300, "seed": 1, "bleu": 33.75}
    translation.append({**tight, "params_m": 0.75, "limit_ms": 3.5, "measured_ms": 3.25})
    alone = [
        {"updates": 100, "alone": 200, "seed": 1, "subnet": HALF, "bleu": 34.75},
        {"updates": 0, "alone": 300, "seed": 1, "subnet": SHALLOW, "bleu": 35.5},
        {"updates": 0, "alone": 300, "seed": 2, "subnet": SHALLOW, "bleu": 36},
    ]
    masked = ablations(
        "loss", {(FULL, "largest", 0, 1): 2.5, (FULL, "largest", 200, 1): 2.25, (FULL, "largest", 200, 2): 2.75}
    )
    single = [
        {"after": stage, "layer": layer, "ppl": ppl + layer, "softmax_ppl": 4.5}
        for stage, ppl in (("copied", 90.0), ("trained", 5.0))
        for layer in (1, 2)
    ]
    cost = {"near": 256, "far": 8191, "near_ms": 1.0}
    return {
        "elastic_translation": {
            **ABOUT, "trained_updates": 1608, "updates": 300, "trained": {"bleu": 36.6}, "alone": alone,
            "predicted_ms": {"largest": 19.5, SHALLOW: 9.4}, "relative_latency": {SHALLOW: 0.6}, "rows": translation,
        },
        "elastic_image": {
            **ABOUT, "epochs": 12, "updates": 300, "trained": {"epoch": 12, "top1": 71.3},
            "rows": ablations("top1", {at: value + 30 for at, value in SCORES.items()}),
        },
        "elastic_masked_lm": {
            **ABOUT, "layers": 4, "width": 128, "trained_updates": 1500, "updates": 200, "rows": masked,
        },
        "attention_placement": {
            **ABOUT, "layers": 2, "width": 96, "length": 2048, "context": 8192, "fit": 150, "tuning": 99,
            "single_layers": single, "all_linear_ppl": {"copied": 95.5, "trained": 8.25},
            "decoding": [
                {**cost, "linear_layers": 0, "far_ms": 2.5, "cache_mb": 4.0},
                {**cost, "linear_layers": 2, "far_ms": 1.05, "cache_mb": 0.5},
            ],
            "placements": [
                {"linear_layers": 1, "cache_mb": 2.25, "ppl": 5.75, "attention": ["softmax", "linear"],
                 "given": {"linear in every second": 5.5, "linear in the last 1": 6.25}},
            ],
        },
    }  # fmt: skip


@pytest.fixture
def results(tmp_path: Path) -> Results:
    """The committed results, with made-up ones of trained networks in place of any that there are."""
    folder = tmp_path / "results"
    shutil.copytree(FOLDER, folder)
    for name, content in made_up().items():
        (folder / f"{name}.json").write_text(json.dumps(content))
    return Results(folder)


def told(anchor: str, results: Results) -> str:
    return " ".join(SECTIONS[anchor].markdown(results).split())


def test_a_section_is_there_as_soon_as_its_result_is(results: Results) -> None:
    anchors = [name for name, section in SECTIONS.items() if section.optional and set(section.names) <= set(made_up())]
    assert len(anchors) == 4 and set(anchors) <= set(sections(results))
    for name in made_up():
        (results.folder / f"{name}.json").unlink()
    without = Results(results.folder)
    assert not set(anchors) & set(sections(without)) and sections(without)


def test_translation_says_what_sorting_and_teacher_are_worth(results: Results) -> None:
    text = told("from-a-trained-translation-model", results)
    assert "trained on Multi30k for 1,608 updates, has 36.6 BLEU" in text
    assert "below half of its latency 35.2 (2 seeds are 0.4 apart); in that network" in text
    assert "the teacher is worth 1.9 BLEU, and sorting what is sliced 1.0" in text
    assert "a supernet of 100 updates and trained on alone for 200, with the same teacher, that" in text
    assert "that network has 34.8." in text and "predicts 48 % (9.40 of 19.50 ms)" in text
    assert "trained on alone for 300 updates, it has 35.8 (35.5 to 36.0), more than" in text and "takes 60 % of" in text
    assert f"| {FULL} | 36.6 | 35.2 (35.0 to 35.4) | 31.0 |" in text
    assert "| supernet | 0 updates | 300 updates | 700 updates |" in text and f"| {RANDOM} | | 9.5 | 21.5 |" in text
    assert f"| {FULL}: its largest network | | 36.6 | |" in text
    assert text.index("| 3.50 | 3.25 | 0.75 | 33.8 |") < text.index("| 5.00 | 4.75 | 1.00 | 35.0 |")


def test_masked_language_models_are_told_by_supernet(results: Results) -> None:
    text = told("from-a-trained-masked-language-model", results)
    assert "for 1,500 updates on the English half of Multi30k: 2.50 bits per masked token" in text
    assert f"| {FULL} | 0 | 2.50 |" in text and f"| {FULL} | 200 | 2.50 (2.25 to 2.75) |" in text


def test_the_picture_of_translation_is_drawn(results: Results, tmp_path: Path) -> None:
    picture = SECTIONS["from-a-trained-translation-model"].picture
    assert picture
    save(picture, results, tmp_path / "a.svg", "its stamp")
    assert b"its stamp" in (tmp_path / "a.svg").read_bytes()


def test_images_have_the_same_tables_in_percent(results: Results) -> None:
    text = told("from-a-trained-image-model", results)
    assert (
        "for 12 epochs, finds the class of 71.3 %" in text and f"| {FULL} | 66.6 | 65.2 (65.0 to 65.4) | 61.0 |" in text
    )


def test_attention_says_which_layers_a_search_found(results: Results) -> None:
    text = told("attention-of-a-trained-model", results)
    assert "| linear attention in layer | copied | trained |" in text and "| 2 | 92.00 | 7.00 |" in text
    assert "| all | 95.50 | 8.25 |" in text and "| none | 4.50 | 4.50 |" in text
    assert "| 1 | 2.25 | 2 | 5.75 | in every second 5.50; in the last 1 6.25 |" in text and "better in 0 of 1" in text
    assert "takes 2.50 times one at 256" in text and "4.00 MB and 0.50 MB" in text
