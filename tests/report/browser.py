"""A real browser for tests of pages: Chromium without a window, driven by playwright; they skip where there is none."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

__all__ = ["opened_browser", "point_of", "visited"]

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
WAIT_MS = 30_000
"""For what a page does at once on a machine that has nothing else to do."""


@contextmanager
def opened_browser() -> Iterator[Any]:
    """Playwright's own Chromium or one on the PATH; skips the test where there is neither."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with sync_api.sync_playwright() as playwright:
        installed = playwright.chromium.executable_path
        result = installed if Path(installed).exists() else next(filter(None, map(shutil.which, NAMES)), None)
        if result is None:
            pytest.skip("no Chromium: neither playwright's own nor one on the PATH")
        rights = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=result, args=["--disable-gpu", *rights])
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def visited(browser: Any, file: Path, address: str = "", **options: Any) -> Iterator[Any]:
    """The page of a file, without a network; at its end nothing but the file has been asked for, and nothing was said
    to the console but warnings.

    Args:
        address: what follows the file's name. options: of the browser's context, such as ``color_scheme``.
    """
    context = browser.new_context(**{"viewport": {"width": 1280, "height": 800}, **options})
    context.set_offline(True)
    page = context.new_page()
    page.set_default_timeout(WAIT_MS)
    evaluated: list[str] = []
    wrong: list[str] = []
    page.on("request", lambda request: evaluated.append(request.url))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
    try:
        page.goto(file.as_uri() + address, wait_until="load")
        yield page
        assert not wrong
        assert {url.partition("#")[0] for url in evaluated if not url.startswith(("data:", "blob:"))} == {file.as_uri()}
    finally:
        context.close()


def point_of(page: Any, plot: str, trace: int, number: int) -> tuple[float, float]:
    """Where a row's point of a figure lies in the window, in pixels, after scrolling to it."""
    page.locator(f"#{plot}").scroll_into_view_if_needed()
    x, y = page.evaluate(
        """([plot, trace, number]) => {
          const place = document.getElementById(plot), full = place._fullLayout, box = place.getBoundingClientRect();
          const at = place.data[trace].customdata.indexOf(number), { x, y } = place.data[trace];
          return [box.left + full.xaxis._offset + full.xaxis.d2p(x[at]),
            box.top + full.yaxis._offset + full.yaxis.d2p(y[at])];
        }""",
        [plot, trace, number],
    )
    return float(x), float(y)
