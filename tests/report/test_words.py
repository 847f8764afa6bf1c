"""Figures in words, and the rows of any page, as a browser's script and a screen reader get them."""

from __future__ import annotations

import json

from nas_core.report import Field, Page, Points, Row
from nas_core.report.page import interactive
from nas_core.report.page.text import in_words
from tests.report.pages import ReadPage


def test_a_front_in_words() -> None:
    cloud = interactive.Cloud("a<b", [1.0, 2.0, 3.0], [5.0, 3.0, 4.0], [0, 1, 2])
    words = in_words(interactive.fronts([cloud], "latency (ms)", "loss"))
    assert words.startswith("Horizontal axis: latency (ms); vertical axis: loss. a<b (3): 3 points, lowest 3 at 2,")
    assert "highest 5 at 1." in words and "Pareto front (2): 2 points" in words


def test_bars_and_parallel_coordinates_in_words() -> None:
    words = in_words(interactive.bars({"loss": {"depth": 0.5, "width": 0.25}}, "tau"))
    assert words.endswith("loss: depth 0.5, width 0.25."), "as they stand, from the top"
    many = in_words(interactive.bars({"loss": {f"gene{at}": at / 100 for at in range(45)}}, "tau"))
    assert many.endswith("gene5 0.05 and 5 more.")
    axes = [
        {"label": "ms", "values": [1.0, 2.5]},
        {"label": "kind", "values": [0, 1], "ticks": {0: "gelu", 1: "relu"}},
        {"label": "layers", "values": [2, 3], "ticks": {2: "2", 3: "3"}},
    ]
    words = in_words(interactive.parallel(axes, [1.0, 2.0], "loss", maximised=False))
    assert words == "ms: 1 to 2.5. kind: gelu, relu. layers: 2 to 3."
    assert in_words(interactive.fronts([interactive.Cloud("none", [], [], [])], "x", "y")) == (
        "Horizontal axis: x; vertical axis: y."
    )


def test_what_a_row_lacks_is_left_out() -> None:
    assert Row("a").content == {"key": "a", "values": []}
    assert Row("a", [1.0, "", None], about=["", "b"]).content == {"key": "a", "values": [1.0], "about": ["b"]}
    full = Row("a", [None, "x"], "A", ["b"], {"c": "d"}, {"e": [1]}, {"": {"f": [2]}}).content
    assert full == {
        "key": "a", "values": [None, "x"], "title": "A", "about": ["b"], "facts": [["c", "d"]], "genes": {"e": [1]},
        "drawing": {"": {"f": [2]}},
    }  # fmt: skip


def test_decimals_of_fields() -> None:
    assert [Field.of("x", "ms", spec).digits for spec in (".2f", ".0f", ".4g", "")] == [2, 0, None, None]


def test_a_page_of_rows_without_figures_has_no_plotly() -> None:
    page = Page("Rows")
    page.points(Points([Field("latency", "ms", 2)], [Row("a", [1.0])], noun="network"))
    text = page.render()
    read = ReadPage(text)
    assert len(text) < 100_000 and "All networks" in read.text and "Selected network" in read.text
    assert read.data["points"]["noun"] == "network" and len(read.scripts) == 1


def test_hundreds_of_rows_stay_small() -> None:
    genes = {"encoder.layers": 6, **{f"encoder.{name}": [512, 384, 256, 512, 384, 256] for name in ("a", "b", "c")}}
    rows = [Row(f"{number:010x}", [4.5, 12.25, "≤ 16 ms"], genes=genes) for number in range(500)]
    fields = [Field("loss"), Field("latency", "ms", 2), Field("evaluated by")]
    content = json.dumps(Points(fields, rows, kinds={"linear": ("#d1662b", "L")}).content, separators=(",", ":"))
    assert len(content) < 250 * len(rows)
