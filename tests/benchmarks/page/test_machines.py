"""The part of the page of results that the files of ``make bench`` make."""

from __future__ import annotations

import shutil
from pathlib import Path

from benchmarks.page.__main__ import texts
from benchmarks.page.results import FOLDER, Results
from nas_core.files import write_json
from tests.toys import ROOT

MACHINE = {"cpu": "Abacus 7", "cores": 4, "torch": "2.20.0", "platform": "Linux x86_64"}
SOFTWARE = "nas-ext 9, torch 2.19.0, Python 3.11.7"
DONE = {"date": "2026-01-02", "software": SOFTWARE, "status": "done", "seconds": 90.0, "cpu_s": 80.0}
BENCHMARKS = {
    "attention_scale": {
        **DONE, "size": "", "others_cores": 0.0, "prepared_s": 60.0,
        "figures": [{"what": "change of the output", "value": 0.0212525, "unit": ""}],
    },
    "linear_attention": {
        **DONE, "date": "2026-01-05", "size": "--repeats 5", "others_cores": 0.1,
        "figures": [
            {"what": "speed", "value": 3.14159, "unit": "x"}, {"what": "as undisturbed", "value": True, "unit": ""},
            {"what": "as before", "value": False, "unit": ""}, {"what": "in a second", "value": 114501, "unit": ""},
        ],
    },
    "proxies": {"date": "2026-01-07", "status": "skipped", "size": "--cells 2", "reason": "a.npz is absent"},
    "prior": {"date": "2026-01-07", "status": "skipped", "reason": "a.npz is absent"},
    "decoding_length": {**DONE, "status": "failed", "size": "--repeats 4", "reason": "out of memory"},
}  # fmt: skip


def page(folder: Path, **benchmarks: object) -> str:
    """The page with the file of one machine."""
    results = shutil.copytree(FOLDER, folder / "results")
    shutil.rmtree(results / "machines", ignore_errors=True)
    if benchmarks:
        measured = {"date": "2026-01-07", "command": "make bench"}
        write_json(
            results / "machines" / "abacus.json", {"measured": measured, "machine": MACHINE, "benchmarks": benchmarks}
        )
    return texts(Results(results), ROOT)[ROOT / "docs" / "results.md"]


def test_without_a_file_it_says_how_to_make_one(tmp_path: Path) -> None:
    text = page(tmp_path)
    assert "[On your machine](#on-your-machine)" in text
    assert "No machine is here yet. `make bench` runs each benchmark that has a small size once" in " ".join(
        text.split()
    )


def test_a_machine_has_a_table_and_what_has_no_figures(tmp_path: Path) -> None:
    text = page(tmp_path, **BENCHMARKS)
    for told in (
        "### abacus", "| `attention_scale` |  | change of the output | 0.0213 |",
        "| `linear_attention` | `--repeats 5` | speed | 3.14 x |", "|  |  | as undisturbed | yes |",
        "|  |  | as before | NO |", "|  |  | in a second | 114,501 |",
        "- `decoding_length`: failed, out of memory", "- `proxies` and `prior`: skipped, a.npz is absent",
        "> Measured with `make bench`, 2026-01-02 to 2026-01-05, on Abacus 7, 4 cores, with nas-ext 9, torch 2.19.0,"
        " Python 3.11.7, in 5.5 minutes; figures in `benchmarks/results/machines/abacus.json`.",
    ):  # fmt: skip
        assert told in text
    assert "No machine is here yet" not in text


def test_a_busy_machine_is_said(tmp_path: Path) -> None:
    text = page(tmp_path, linear_attention={**BENCHMARKS["linear_attention"], "others_cores": 1.26})
    assert "while other programs kept up to 1.3 cores busy, so that times are too long; figures in" in text


def test_what_other_software_measured_is_told_with_it_and_benchmarks_that_are_gone_are_not(tmp_path: Path) -> None:
    newer = {**BENCHMARKS["linear_attention"], "software": "nas-ext 9, torch 2.20.0, Python 3.11.7"}
    older = BENCHMARKS["attention_scale"]
    gone = {**older, "software": "nas-ext 1"}
    text = page(tmp_path, attention_scale=older, linear_attention=newer, no_benchmark_any_more=gone)
    assert (
        f"4 cores, `attention_scale` with {SOFTWARE}, `linear_attention` with nas-ext 9, torch 2.20.0, Python 3.11.7,"
        " in 4.0 minutes;" in text
    )
    assert "no_benchmark_any_more" not in text and "nas-ext 1" not in text


def test_a_machine_on_which_nothing_ran_has_no_table(tmp_path: Path) -> None:
    text = page(tmp_path, proxies=BENCHMARKS["proxies"]).split("### abacus")[1]
    assert "| benchmark |" not in text and "- `proxies`: skipped, a.npz is absent" in text
    assert "> Measured with `make bench`, 2026-01-07, on Abacus 7, 4 cores, in 0.0 minutes;" in text
