"""Pages in a browser: figures, the network behind a point, two side by side, sorting, dark mode; progress."""

from __future__ import annotations

from pathlib import Path

import pytest

from nas_core.locks import file_lock
from nas_core.report import write_comparison, write_report
from nas_core.report.run import read_run
from nas_core.report.search_page import state_of
from tests.report.browser import opened_browser, point_of, visited
from tests.report.pages import ReadPage
from tests.report.runs import made_run, unfinished


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_run(tmp_path_factory.mktemp("runs") / "one")


def test_a_page_loads_nothing_and_figures_refer_to_its_rows(run: Path) -> None:
    page = ReadPage(write_report(run).read_text(encoding="utf-8"))
    assert page.loaded == [] and page.policy.startswith("default-src 'none'")
    rows, search_run = page.data["points"]["rows"], read_run(run)
    assert [row["key"] for row in rows] == [evaluation["key"] for evaluation in search_run.evaluations]
    places = [field["title"] for field in page.data["points"]["fields"]]
    for name, trace in page.traces(0).items():
        if name.startswith("evaluated"):
            assert len(trace["x"]) == len(rows)
            for x, y, number in zip(trace["x"], trace["y"], trace["customdata"], strict=True):
                values = rows[number]["values"]
                assert (values[places.index("predicted latency")], values[places.index("loss")]) == (x, y)
    best = rows[page.data["points"]["first"]]["values"]
    assert best[places.index("best")] == "≤ 16 ms"


@pytest.mark.slow
def test_a_page_in_a_browser(run: Path, tmp_path: Path) -> None:
    other = made_run(tmp_path / "two", seed=1)
    write_report(run)
    comparison = write_comparison([run, other], tmp_path / "both.html")
    with opened_browser() as browser:
        with visited(browser, run / "report.html", color_scheme="dark") as page:
            page.wait_for_selector("#plot1 .scatterlayer")
            ground = "getComputedStyle(document.body).backgroundColor"
            assert page.evaluate(ground) == "rgb(21, 25, 30)"
            page.click("#theme")
            assert page.evaluate(ground) == "rgb(255, 255, 255)"
            page.locator("#rows tbody tr").nth(3).click()
            rows = page.evaluate("JSON.parse(document.getElementById('points').textContent).rows.map((row) => row.key)")
            assert page.locator("#panel thead").inner_text().strip() == rows[3] and f"a={rows[3]}" in page.url
            page.click("text=Keep for comparison")
            page.mouse.click(*point_of(page, "plot1", 0, 5))
            page.wait_for_selector(f"#panel thead th:has-text('{rows[5]}')")
            assert page.locator("#panel thead th").all_inner_texts() == ["", rows[5], rows[3]]
            assert page.locator("#panel td.differs").count() > 0 and page.locator("#panel .layer").count() > 4
            page.mouse.move(*point_of(page, "plot1", 0, 7))
            page.wait_for_selector(f".hoverlayer >> text={rows[7]}")
            page.locator("#rows th", has_text="loss").click()
            losses = [float(text) for text in page.locator("#rows tbody td:nth-child(2)").all_inner_texts()]
            assert losses == sorted(losses) and len(losses) == len(rows)
            page.fill("#filter", rows[2])
            assert page.locator("#rows tbody tr:visible").count() == 1
        with visited(browser, comparison, "#a=" + rows[1]) as page:
            page.wait_for_selector("#plot1 .scatterlayer")
            assert rows[1] in page.locator("#panel thead").inner_text()


def test_how_far_a_search_is(tmp_path: Path) -> None:
    folder = made_run(tmp_path / "run")
    assert state_of(read_run(folder)) == "ended"
    assert 'http-equiv="refresh"' not in write_report(folder).read_text(encoding="utf-8")
    unfinished(folder, 5)
    assert state_of(read_run(folder)) == "stopped"
    assert "The same command continues it" in write_report(folder).read_text(encoding="utf-8")
    with file_lock(folder / "journal.lock", "searches", "wait"):
        page = write_report(folder).read_text(encoding="utf-8")
    assert "The search is running" in page and '<meta http-equiv="refresh" content="10">' in page
