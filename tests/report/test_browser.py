"""Pages of searches in a real browser: without a network, by mouse, by keys, on a phone, while the search runs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nas_core.locks import only_process
from nas_core.report import Column, Page, Table, read_run, write_comparison, write_report
from tests.report.browser import CONTRAST, opened_browser, point_of, unnamed, visited
from tests.report.runs import made_run, unfinished

PHONE = {"viewport": {"width": 360, "height": 740}, "has_touch": True, "is_mobile": True}
ROWS = "#rows tbody tr"
HEADING = "#architecture .card:first-child h3"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with opened_browser() as found:
        yield found


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = made_run(tmp_path_factory.mktemp("run"))
    write_report(folder)
    return folder


def keys_of(run: Path) -> list[str]:
    return [str(evaluation["key"]) for evaluation in read_run(run).evaluations]


def overflow(page: Any) -> int:
    return int(page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"))


def low_contrast(page: Any) -> list[Any]:
    found = page.evaluate(CONTRAST)
    assert len(found) > 50, "too few texts to say anything"
    return [one for one in found if one[1] < 4.5]


def test_by_mouse(browser: Any, run: Path) -> None:
    keys = keys_of(run)
    with visited(browser, run / "report.html") as page:
        page.wait_for_selector("#plot1 .points")
        x, y = point_of(page, "plot1", 0, 7)
        page.mouse.move(x, y)
        hovered = page.wait_for_selector("#plot1 .hoverlayer .hovertext").text_content()
        assert "predicted latency: " in hovered and "ffn_dim" in hovered
        page.mouse.click(x, y)
        page.wait_for_function("location.hash.startsWith('#a=')")
        key = page.evaluate("location.hash").removeprefix("#a=")
        assert key in hovered and page.text_content(HEADING) == f"Architecture {key}"
        genes = read_run(run).evaluations[keys.index(key)]["genes"]
        sides = page.locator("#architecture .side svg")
        assert sides.count() == 2 and "Encoder of" in sides.nth(0).locator("title").text_content()
        said = sides.nth(0).locator("desc").text_content()
        assert "ffn dim: " + ", ".join(map(str, genes["encoder.ffn_dim"])) in said
        assert sides.nth(0).locator("rect.bar").count() == 2 * genes["encoder.layers"]
        letters = [word[0].upper() for word in genes["encoder.self_attention"]]
        assert sides.nth(0).locator("text.value").all_text_contents()[: len(letters)] == letters
        assert page.locator(f"{ROWS}[aria-selected=true]").get_attribute("data-row") == str(keys.index(key))
        marked = page.evaluate("document.getElementById('plot1').data.at(-1)")
        assert len(marked["x"]) == 1 and marked["marker"]["symbol"] == "circle-open"

        brush = page.locator(".parcoords .axis-brush").first
        brush.scroll_into_view_if_needed()
        box = brush.bounding_box()
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 0.25 * box["height"])
        page.mouse.down()
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 0.95 * box["height"], steps=6)
        page.mouse.up()
        page.wait_for_function("document.querySelector('#count').textContent.includes(' of ')")
        left = page.locator(ROWS).count()
        assert 0 < left < len(keys)
        bright = page.evaluate("document.getElementById('plot1').data[0].selectedpoints.length")
        assert bright == left
        page.locator("[id$=-reset]").last.click()
        page.wait_for_function(f"document.querySelectorAll('{ROWS}').length === {len(keys)}")
        assert page.evaluate("document.getElementById('plot1').data[0].selectedpoints") is None


def test_by_keys(browser: Any, run: Path) -> None:
    losses = [evaluation["metrics"]["loss"] for evaluation in read_run(run).evaluations]
    keys = keys_of(run)
    with visited(browser, run / "report.html", f"#a={keys[5]}") as page:
        page.wait_for_selector("#plot1 .points")
        assert page.text_content(HEADING) == f"Architecture {keys[5]}", "a link to a selection"
        everything = page.evaluate(
            """() => [...document.querySelectorAll("a[href], button, input, select, summary, [tabindex='0']")]
              .filter((one) => !one.disabled && one.checkVisibility()).length"""
        )
        reached = set()
        for _ in range(everything + 2):
            page.keyboard.press("Tab")
            reached.add(page.evaluate(
                "() => { const all = [...document.querySelectorAll('*')]; return all.indexOf(document.activeElement); }"
            ))  # fmt: skip
            if len(reached) == 1:
                assert page.evaluate("document.activeElement.className") == "skip"
        body = page.evaluate("[...document.querySelectorAll('*')].indexOf(document.body)")
        assert len(reached - {body}) == everything, "what answers to a mouse is reached by keys"
        assert unnamed(page) == []

        page.focus("#sort-field0")
        page.keyboard.press("Enter")
        assert page.get_attribute("#rows th:has(#sort-field0)", "aria-sort") == "ascending"
        shown = [int(line.get_attribute("data-row")) for line in page.locator(ROWS).all()]
        assert [losses[row] for row in shown] == sorted(losses)
        page.keyboard.press("Enter")
        assert page.get_attribute("#rows th:has(#sort-field0)", "aria-sort") == "descending"

        page.focus("#filter")
        page.keyboard.type(keys[3][:8])
        assert page.locator(ROWS).count() == 1 and page.text_content("#count").startswith("1 of 20")
        page.locator(ROWS).focus()
        page.keyboard.press("Enter")
        assert page.text_content(HEADING) == f"Architecture {keys[3]}"
        page.focus("#reset")
        page.keyboard.press("Enter")
        page.locator(f"{ROWS}[tabindex='0']").focus()
        page.keyboard.press("Home")
        page.keyboard.press("Shift+Enter")
        page.keyboard.press("ArrowDown")
        second = page.evaluate("document.activeElement.dataset.row")
        assert page.text_content(HEADING) == f"Architecture {keys[int(second)]}"
        worst = keys[losses.index(max(losses))]
        assert page.text_content(".card + .card h3") == f"Compared with: Architecture {worst}"
        assert page.get_attribute("#architecture .told", "aria-live") == "polite"
        assert low_contrast(page) == []


def test_on_a_phone_in_the_dark(browser: Any, run: Path) -> None:
    with visited(browser, run / "report.html", color_scheme="dark", reduced_motion="reduce", **PHONE) as page:
        page.wait_for_selector("#plot1 .points")
        assert overflow(page) == 0 and low_contrast(page) == []
        assert page.evaluate("getComputedStyle(document.querySelector('.skip')).transitionDuration") == "0s"
        ink = page.evaluate("document.getElementById('plot1').layout.font.color")
        assert ink == "#e4e8ec", "figures are dark as well"
        x, y = point_of(page, "plot1", 0, 4)
        page.touchscreen.tap(x, y)
        page.wait_for_function("location.hash !== ''")
        page.locator("summary", has_text="Ranges as numbers").tap()
        page.get_by_label("loss, to").fill("5.7")
        page.get_by_label("loss, to").press("Tab")
        left = sum(evaluation["metrics"]["loss"] <= 5.7 for evaluation in read_run(run).evaluations)
        page.wait_for_function(f"document.querySelectorAll('{ROWS}').length === {left}")
        assert overflow(page) == 0


def test_a_wide_table_wraps(browser: Any, tmp_path: Path) -> None:
    names = ["predicted latency (ms)", "peak memory of decoding (MB)", "best without a limit"] * 3
    wide = Page("Wide")
    wide.table(Table([Column("a", name, ".2f") for name in names], [{"a": 1.0}]))
    wide.save(tmp_path / "wide.html")
    with visited(browser, tmp_path / "wide.html", viewport={"width": 1200, "height": 800}) as page:
        assert page.evaluate("(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth)"
                             "(document.querySelector('.scroll'))") == 0  # fmt: skip


def test_a_running_search(browser: Any, tmp_path: Path) -> None:
    folder = made_run(tmp_path)
    finalists = (folder / "finalists.json").read_bytes()
    later = unfinished(folder, 12)
    keys = keys_of(folder)
    with only_process(folder / "journal.lock", "searches", "wait"):
        os.utime(folder / "journal.jsonl", (1.7e9, 1.7e9))
        write_report(folder, reload_s=60)
        with visited(browser, folder / "report.html") as page:
            page.wait_for_selector("#running.late")
            assert page.text_content("#running-state").startswith("No news: the search may have ended or stopped")
            assert "days ago" in page.text_content("#running-age")
            page.click("#pause")
            assert page.text_content("#pause") == "Reload every 60 s"
            page.click("#pause")
            page.focus("#sort-field0")
            page.keyboard.press("Enter")
            page.locator(f"{ROWS}[data-row='8']").click()
            page.evaluate("scrollTo(0, 700)")
            with (folder / "journal.jsonl").open("a", encoding="utf-8") as journal:
                journal.write(later[0])
            write_report(folder, reload_s=2)
            page.evaluate("location.reload()")
            page.wait_for_function("document.querySelectorAll('#rows tbody tr').length === 13")
            assert page.text_content("#running-state").startswith("Running: 13 of at most 20 evaluations")
            page.wait_for_function("scrollY === 700")
            with (folder / "journal.jsonl").open("a", encoding="utf-8") as journal:
                journal.writelines(later[1:])
            (folder / "finalists.json").write_bytes(finalists)
            write_report(folder)
            page.wait_for_function("document.querySelectorAll('#rows tbody tr').length === 20")
            assert page.locator("#running").count() == 0, "it has ended, and this was seen without a hand"
            assert page.get_attribute("#rows th:has(#sort-field0)", "aria-sort") == "ascending"
            assert page.text_content(HEADING) == f"Architecture {keys[8]}"


def test_side_by_side(browser: Any, run: Path, tmp_path: Path) -> None:
    other = made_run(tmp_path / "other", seed=1)
    file = write_comparison([run, other], tmp_path / "both.html")
    with visited(browser, file) as page:
        page.wait_for_selector("#plot1 .points")
        runs = page.locator(f"{ROWS} td:nth-child(3)").all_text_contents()
        names = sorted({run.name, "other"})
        assert sorted(set(runs)) == names and len(runs) == 40
        page.locator(ROWS).nth(2).click()
        page.click("#pin")
        page.locator(ROWS).nth(25).click()
        assert page.locator("#architecture .card:visible .side svg").count() == 4
        assert "Different: " in page.text_content("#architecture .tools")
        legend = page.locator("#plot1-legend0")
        legend.click()
        assert legend.get_attribute("aria-pressed") == "false" and unnamed(page) == []
        assert page.evaluate("document.getElementById('plot1').data[0].visible") == "legendonly"
        traces = page.evaluate("document.getElementById('plot1').data")
        assert {trace["marker"].get("symbol") for trace in traces} >= {"circle", "square"}, (
            "told apart by more than colours"
        )
        assert {trace["line"]["dash"] for trace in traces if "lines" in trace["mode"]} == {"solid", "dash"}
