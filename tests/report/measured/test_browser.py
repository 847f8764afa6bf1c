"""The pages of latency data sets and predictors in a real browser."""

from __future__ import annotations

from pathlib import Path

import pytest

from nas_core.cli import main
from tests.latency.by_genes.machine import Machine
from tests.report.browser import opened_browser, point_of, visited
from tests.report.measured.data import architectures_file, read, report

pytestmark = pytest.mark.slow


def test_a_click_shows_what_is_behind_a_point_and_a_phone_is_wide_enough(tmp_path: Path, machine: Machine) -> None:
    data, fitted = architectures_file(tmp_path / "lat.jsonl", machine), tmp_path / "lat.json"
    assert main(["latency", "fit", "--data", str(data), "--out", str(fitted)]) == 0
    assert report("latency", data, "--model", fitted) == 0
    file = tmp_path / "lat.report.html"
    rows = {row["key"]: row for row in read(file).data["points"]["rows"]}
    with opened_browser() as browser:
        with visited(browser, file) as page:
            page.wait_for_selector("#plot1 .points path", state="attached")
            trace = page.evaluate("document.getElementById('plot1').data.findIndex((one) => one.customdata)")
            page.mouse.click(*point_of(page, "plot1", trace, 3))
            page.wait_for_function("location.hash.startsWith('#a=')")
            chosen = rows[page.evaluate("location.hash").removeprefix("#a=")]
            shown = page.text_content("#architecture")
            assert f"Architecture {chosen['key']}" in shown and f"{chosen['values'][0]:.3f} ms" in shown
            assert "off by" in shown and "The model has learned it." in shown and "encoder.embed_dim" in shown
        with visited(browser, file, viewport={"width": 360, "height": 740}) as page:
            page.wait_for_selector("#plot1 .points path", state="attached")
            assert page.evaluate("document.documentElement.scrollWidth") <= 360
