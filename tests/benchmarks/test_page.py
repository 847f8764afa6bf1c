"""The page of results and figures on other pages, from JSON files and declarations."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import benchmarks.page
from benchmarks.page import Page, Table, main, save_plot
from nas_core.errors import DataError
from nas_core.files.writing import write_json
from tests.toys import ROOT

ROWS = [{"seed": seed, "kind": kind, "size": size, "loss": seed + size}
        for seed in (1, 2) for kind in ("a", "b") for size in (20, 100)]  # fmt: skip


def test_pages_and_plots_are_up_to_date() -> None:
    assert main(["--check", "--root", str(ROOT)]) == 0, "run python -m benchmarks.page"


def test_table_filters_pivots_and_averages_rows() -> None:
    declared = {"rows": ["rows", r"\d+"], "by": {"kind": "kind"}, "across": "size", "value": "loss", "digits": 2}
    table = Table({**declared, "where": {"kind": "a"}, "names": {"a": "first"}}, {"toy": {"rows": ROWS}})
    assert table.header == ["kind", "20", "100"] and table.rows == [["first", 21.5, 101.5]]
    assert table.markdown().splitlines() == [
        "| kind | 20 | 100 |",
        "| --- | ---: | ---: |",
        "| first | 21.50 | 101.50 |",
    ]
    deviations = Table(
        {"rows": ["rows", r"\d+"], "by": {"size": "size"}, "columns": [["", "std:loss", 2]]}, {"toy": {"rows": ROWS}}
    )
    assert deviations.markdown().splitlines()[2:] == ["| 20 | 0.58 |", "| 100 | 0.58 |"]
    with pytest.raises(DataError, match="no row of toy"):
        Table({**declared, "where": {"kind": "c"}}, {"toy": {"rows": ROWS}})


def test_keys_become_fields_and_may_contain_dots() -> None:
    content = {"speed": {"causal 256": {"same": {"pareto.csv": True}, "times": [1, 2]}}}
    columns = [["same", "same.pareto.csv"], ["times", "times", 1]]
    declared = {"rows": ["speed", r"(?P<form>\w+) (?P<length>\d+)"], "by": {"form": "form"}, "columns": columns}
    assert Table(declared, {"toy": content}).markdown().endswith("| causal | yes | 1.0, 2.0 |")


def test_figures_follow_the_results() -> None:
    page = Page()
    figure = "<!-- figure: demo_front | rows.network=largest.params_m | 1 -->"
    assert page.fill_figures(f"{figure}0<!-- /figure --> M") == f"{figure}1.4<!-- /figure --> M"
    with pytest.raises(DataError, match=r"demo_front \| rows\.network=none: the results have no such value"):
        page.fill_figures("<!-- figure: demo_front | rows.network=none -->0<!-- /figure -->")


def test_every_result_has_a_section(tmp_path: Path) -> None:
    write_json(tmp_path / "new.json", {})
    with pytest.raises(DataError, match="new: no section shows this result"):
        Page(tmp_path)
    assert main(["--results", str(tmp_path), "--root", str(tmp_path)]) == 2


def test_stale_files_are_listed_written_and_removed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(benchmarks.page, "save_plot", lambda path, table, plot, stamp: path.write_text(stamp))
    (tmp_path / "docs" / "results").mkdir(parents=True)
    (tmp_path / "docs" / "results" / "old.svg").touch()
    (tmp_path / "README.md").write_text("<!-- figure: demo_front | updates -->0<!-- /figure -->")
    assert main(["--check", "--root", str(tmp_path)]) == 1
    listed = capsys.readouterr().out
    assert all(f"{name} is stale" in listed for name in ("README.md", "results.md", "front.svg", "old.svg"))
    assert main(["--root", str(tmp_path)]) == main(["--check", "--root", str(tmp_path)]) == 0
    assert not (tmp_path / "docs" / "results" / "old.svg").exists()


@pytest.mark.parametrize("kind", ["lines", "points", "bars"])
def test_a_plot_carries_the_hash_of_its_data(kind: str, tmp_path: Path) -> None:
    declared = {"rows": ["rows", r"\d+"], "by": {"kind": "kind"}, "across": "size", "value": "loss"}
    table = Table(declared, {"toy": {"rows": ROWS}})
    save_plot(
        tmp_path / "toy.svg", table, {"name": "toy", "kind": kind, "columns": ["20", "100"], "x": "size"}, "abc123"
    )
    assert "benchmarks/results abc123" in (tmp_path / "toy.svg").read_text(encoding="utf-8")


def test_links_to_the_page_lead_to_sections() -> None:
    page = Page().markdown()
    anchors = {re.sub(r"[^\w-]+", "-", title.lower()).strip("-") for title in re.findall(r"(?m)^## (.*)$", page)}
    for file in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        assert set(re.findall(r"results\.md#([\w-]+)", file.read_text(encoding="utf-8"))) <= anchors, file
