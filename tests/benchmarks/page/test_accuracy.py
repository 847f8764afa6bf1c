"""Tables of accuracy predictors: which rows are marked, and what stands in their cells."""

from __future__ import annotations

from typing import Any

from benchmarks.page.results import Results
from benchmarks.page.sections import accuracy_tables as tables
from benchmarks.parts.accuracy.methods import settings_of


def row(method: str, benchmark: str = "nasbench101", size: int = 100, **more: Any) -> dict[str, Any]:
    given = {"benchmark": benchmark, "size": size, "method": method, "draws": 5, "tau": 0.7, "judged": "all"}
    return {**given, **more}


def keyed(*rows: dict[str, Any]) -> dict[tuple[str, int, str], dict[str, Any]]:
    return {(each["benchmark"], each["size"], each["method"]): each for each in rows}


def test_rows_of_other_settings_and_of_samples_are_marked() -> None:
    today = settings_of("statistics", 100)
    assert tables.marks(row("statistics", settings=today)) == ""
    assert tables.marks(row("statistics", settings="old")) == tables.marks(row("best")) == tables.STAR
    assert tables.marks(row("best, networks alone", judged=40)) == tables.STAR + tables.SAMPLE
    assert tables.marks(row("gcn")) == "" and tables.marks(row("graf forest", judged=9)) == tables.SAMPLE


def test_only_methods_with_a_row_are_shown() -> None:
    columns, methods = [("nasbench101", 100), ("nasbench201", 78)], {"gcn": "GCN", "ridge": "ridge", "best": "mixture"}
    found = keyed(row("gcn"), row("best", "nasbench201", 78, draws=1))
    assert tables.shown(found, columns, methods) == [["GCN", "0.700 (5)", ""], ["mixture", "", "0.700\\* (1)"]]


def test_what_a_search_gets_is_said_of_how_many_cells() -> None:
    found = keyed(
        row("gcn", best_of_50=12.0, tau_top_tenth=0.31, cells=423_624),
        row("gcn", "nasbench201", 156, best_of_50=3.5, tau_top_tenth=0.2, cells=40, judged=40),
        row("ridge"),
    )
    *_, line = tables.search(found, {"gcn": "GCN", "ridge": "ridge"}).splitlines()
    assert line == "| GCN | 12 | 0.310 |  |  | 4 of 40 | 0.200 |  |  |"


def test_mixtures_stand_beside_their_best_part() -> None:
    spread = {"within_1": 0.684, "within_2": 0.951, "settings": settings_of("best", 100)}
    more = row("best", parts={"whole": 0.75, "networks": 0.71, "processes": 0.74, "trees": 0.7}, **spread)
    less = row("statistics", "nasbench301", parts={"whole": 0.6, "processes": 0.604, "trees": 0.5}, **spread)
    first, second = tables.mixtures(keyed(less, more, row("statistics"))).splitlines()[2:]
    assert first == "| NB101: 100, `best` (5) | 0.750 | 0.710 |  | 0.740 | 0.700 |  | +0.010 | 68 | 95 |"
    assert second.startswith("| NB301: 100, `statistics`\\* (5) | 0.600 |  |  | 0.604 | 0.500 |  | -0.004 |")


def test_a_division_has_published_rows_and_both_accuracies() -> None:
    found = keyed(row("gcn", "nasbench101_one_percent", 72, tau_as_told=0.66))
    lines = tables.one_percent(found, Results(), {"gcn": "GCN"}).splitlines()
    assert len(lines) == 6 and lines[-1] == "| GCN | 0.700 (5) | 0.660 |  |  |"


def test_further_benchmarks_have_a_line_for_each_size_that_was_measured() -> None:
    found = keyed(row("ridge", "fbnet_pixel3", 50), row("gcn", "fbnet_pixel3", 100), row("ridge", "nasbench301", 50))
    head, _, *lines = tables.further(found).splitlines()
    assert head == "| Kendall's tau (draws) | ridge | GCN |"
    assert lines == [
        "| NB301: 50 | 0.700 (5) |  |",
        "| FBNet on a Pixel 3: 50 | 0.700 (5) |  |",
        "| FBNet on a Pixel 3: 100 |  | 0.700 (5) |",
    ]
