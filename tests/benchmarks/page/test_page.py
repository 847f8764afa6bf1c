"""The page of results is what the command makes of the JSON files, and of nothing else."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.__main__ import modules
from benchmarks.page.__main__ import pictures, stale, texts
from benchmarks.page.document import NOT_SHOWN, SECTIONS, page, sections
from benchmarks.page.pictures import save
from benchmarks.page.results import FOLDER, PUBLISHED, Results
from benchmarks.page.section import TEXTS, Section
from benchmarks.page.sections.search import DEFAULT_RANKNAS, course
from nas_core.errors import DataError
from tests.toys import ROOT

ANCHORS = {
    "translation", "latency-models", "accuracy-predictors", "before-anything-is-trained", "proxies-beside-graphs",
    "zero-cost-proxies", "latency-predictors", "speed-of-nn-former", "linear-attention", "attention-quality",
    "images", "cost-of-an-update", "queries", "search-under-a-limit", "robustness", "onnx", "network-latency",
    "published-networks", "beyond-the-training-sizes", "held-out-device", "decoding", "decoding-by-position",
    "search-speed", "from-a-trained-translation-model", "from-a-trained-image-model",
    "from-a-trained-masked-language-model", "attention-of-a-trained-model", "networks-that-timm-measured",
    "real-bleu", "estimates-of-supernets", "samplers-of-optuna",
    "estimates-at-equal-passes", "further-training", "estimates-of-bert-supernets", "studies-of-a-supernet",
    "faster-at-how-much-bleu",
}  # fmt: skip
"""What other pages link to."""
SHOWN = sections(Results())
"""Those whose results are there."""
NAMES = re.compile(
    r"NAS-Bench-\d+|CIFAR-10|Multi30k|WikiText-2|WMT'14|MobileNetV[23]|float32|[Bb]float16|`raspi4`"
    r"|batch (1|4|16)\b|batches of 1 |within 10 %"
)
"""Names and settings that have digits of their own."""


def changed(value: Any, place: str = "") -> Any:
    """JSON whose every fraction is larger, each by a share of its own, so that ratios change too."""
    if isinstance(value, dict):
        return {key: changed(each, f"{place}/{key}") for key, each in value.items()}
    if isinstance(value, list):
        return [changed(each, f"{place}/{number}") for number, each in enumerate(value)]
    if isinstance(value, float):
        return value * (1.07 + sum(place.encode()) % 89 / 400)
    return value


def copied(folder: Path) -> Path:
    shutil.copytree(FOLDER, folder)
    return folder


@pytest.fixture(scope="module")
def results() -> Results:
    return Results()


@pytest.fixture(scope="module")
def others(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Results]:
    """Results in which no fraction is what it was measured to be."""
    folder = copied(tmp_path_factory.mktemp("changed") / "results")
    published = folder.parent / PUBLISHED.name
    for old, new in [*((file, file) for file in folder.glob("*.json")), (PUBLISHED, published)]:
        new.write_text(json.dumps(changed(json.loads(old.read_text()))))
    yield Results(folder, published)


def test_pages_and_pictures_are_what_the_command_makes_now(results: Results) -> None:
    assert stale(results, ROOT) == [], "run python -m benchmarks.page"


def test_the_sections_are_those_that_other_pages_link_to(results: Results) -> None:
    assert set(SECTIONS) == ANCHORS
    text = texts(results, ROOT)[ROOT / "docs" / "results.md"]
    assert [name for name, section in SECTIONS.items() if f"## {section.title}\n" in text] == list(SHOWN)


@pytest.mark.parametrize("section", SHOWN.values(), ids=SHOWN)
def test_a_section_says_command_date_machine_file_and_reference(section: Section, results: Results) -> None:
    text = section.markdown(results)
    assert re.search(r"^> Compared with [\w`]", text, re.M)
    for name in section.names:
        assert f"`benchmarks/results/{name}.json`" in text
        for command in results.commands(name):
            assert command.split()[:4] == ["python", "-m", "benchmarks", name] and name in modules()
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", results.date(name)) and results.date(name) in text
        assert {"cpu", "cores", "threads", "torch"} <= results.machines(name)[0].keys()


@pytest.mark.parametrize("file", sorted(TEXTS.rglob("*.md")), ids=lambda file: file.stem)
def test_no_figure_stands_in_a_template(file: Path) -> None:
    text = " ".join(re.sub(r"\{\w+\}", "{}", file.read_text(encoding="utf-8")).split())
    assert not re.findall(r".{0,30}\d.{0,10}", NAMES.sub("", text))


@pytest.mark.parametrize("name", [name for name in SHOWN if name != "robustness"])  # which counts
def test_every_figure_of_a_section_changes_with_the_results(name: str, results: Results, others: Results) -> None:
    now, then = (SECTIONS[name].values(each) for each in (results, others))
    cells = [key for key, value in now.items() if "|" in value or re.search(r"\d\.\d", value)]
    typed = [key for key in cells if now[key] == then[key]]
    assert not typed and now != then


def test_a_changed_result_changes_the_sentence_and_the_table(tmp_path: Path) -> None:
    folder = copied(tmp_path / "results")
    file = folder / "translation_quality.json"
    content = json.loads(file.read_text())
    (row,) = (row for row in content["rows"] if (row["experts"], row["subnet"]) == ("neuron", "largest"))
    row["bleu_inherited"] = 41.23
    file.write_text(json.dumps(content))
    text = texts(Results(folder), ROOT)[ROOT / "docs" / "results.md"]
    assert "the largest subnet has 41.2 with neuron-wise experts" in " ".join(text.split())
    assert text.count("| 41.2 |") == 1 and text.count("| 41.2 (sandwich rule") == 1


def test_a_search_that_misses_a_loss_by_less_than_it_is_rounded_to_has_not_reached_it(results: Results) -> None:
    row = course(results, DEFAULT_RANKNAS)
    rounded = sum(loss <= min(course(results, "hat evolution")["final_loss"]) for loss in row["final_loss"])
    assert rounded > sum(count is not None for count in row["evaluations_to_evolutions_final_loss"]) == 0
    text = " ".join(SECTIONS["search-under-a-limit"].markdown(results).split())
    assert "reaches that loss in 0 of 3 seeds with default pruning" in text


def test_a_search_that_ended_differently_is_said(tmp_path: Path) -> None:
    folder = copied(tmp_path / "results")
    for name in ("search_robustness", "nni_robustness"):
        content = json.loads((folder / f"{name}.json").read_text())
        content["rows"][0]["identical"]["journal.jsonl"] = content["all_identical"] = False
        (folder / f"{name}.json").write_text(json.dumps(content))
    text = " ".join(SECTIONS["robustness"].markdown(Results(folder)).split())
    assert "4 of 5 |" in text and "1 of 2 |" in text
    assert "NOT all files are byte-identical" in text and "NOT all files of NNI's" in text


def test_every_result_is_shown_or_has_a_reason(tmp_path: Path, results: Results) -> None:
    texts(results, ROOT)
    assert results.asked | set(NOT_SHOWN) >= set(results.names) and all(NOT_SHOWN.values())
    folder = copied(tmp_path / "results")
    (folder / "somebody_elses.json").write_text("{}")
    with pytest.raises(DataError, match="somebody_elses: no section"):
        page(Results(folder), "")


def test_pictures_are_white_and_the_same_every_time(tmp_path: Path, results: Results) -> None:
    section = SECTIONS["cost-of-an-update"]
    assert section.picture
    paths = [tmp_path / name for name in ("a.svg", "b.svg")]
    for path in paths:
        save(section.picture, results, path, "its stamp")
    first = paths[0].read_bytes()
    assert first == paths[1].read_bytes()
    assert b"its stamp" in first and b"fill: #ffffff" in first and b"<text" not in first and b"dc:date" not in first


def test_pictures_follow_the_results(results: Results, others: Results) -> None:
    now, then = pictures(results, ROOT), pictures(others, ROOT)
    assert now.keys() == then.keys() and not set(now.values()) & set(then.values())
    assert all(path.exists() for path in now)


def test_results_of_a_gpu_are_shown_as_they_stand(tmp_path: Path) -> None:
    folder = copied(tmp_path / "results")
    shutil.rmtree(folder / "cuda", ignore_errors=True)
    assert "Nothing was measured on a GPU yet" in texts(Results(folder), ROOT)[ROOT / "docs" / "results.md"]
    (folder / "cuda").mkdir()
    machine = {"device_name": "NVIDIA of tomorrow", "torch": "2.12.0"}
    measured = {"date": "2026-01-02", "command": "python -m benchmarks linear_attention --device cuda"}
    rows = [{"precision": "bf16", "positions": 4096, "times_sdpa": 3.14159}, {"precision": "fp32", "positions": 512}]
    content = {"measured": measured, "machine": machine, "rows": rows}
    (folder / "cuda" / "linear_attention.json").write_text(json.dumps(content))
    tests = {"passed": 1234, "failed": ["tests/a.py::b"], "skipped": {"no fairseq": 3}, "missing": {"fla": "kernels"}}
    (folder / "cuda" / "tests.json").write_text(json.dumps({"measured": measured, "machine": machine, **tests}))
    text = texts(Results(folder), ROOT)[ROOT / "docs" / "results.md"]
    for told in (
        "### linear attention", "| precision | positions | times sdpa |", "| bf16 | 4,096 | 3.14 |",
        "| fp32 | 512 |  |",
        "on NVIDIA of tomorrow, torch 2.12.0; figures in `benchmarks/results/cuda/linear_attention.json`",
        "1,234 tests passed, 1 failed.", "- failed: `tests/a.py::b`", "- skipped: 3, no fairseq",
        "- not installed there: fla",
    ):  # fmt: skip
        assert told in text
