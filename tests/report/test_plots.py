"""What stands in the pictures of a search."""

import itertools
import subprocess
import sys

import pytest

from nas_core.report import architecture, architecture_picture, plots
from nas_core.report.page import interactive
from nas_core.space import Architecture

PNG = b"\x89PNG\r\n\x1a\n"


def test_a_limit_is_drawn_as_it_was_given(monkeypatch):
    figures = []
    original = plots.png
    monkeypatch.setattr(plots, "png", lambda figure: (figures.append(figure), original(figure))[1])
    plots.pareto([(11.0, 4.0)], limits=[11.52])
    assert [text.get_text() for text in figures[0].axes[0].texts] == ["11.52"]


def drawn(monkeypatch, draw):
    """The figures behind pictures."""
    figures = []
    for module in (plots, architecture):
        monkeypatch.setattr(module, "png", lambda figure: (figures.append(figure), b"")[1])
    draw()
    return figures


def test_there_is_no_half_a_head(monkeypatch):
    genes = {"heads": [1, 2, 1], "ffn_dim": [192, 384, 192], "share": [0.5, 0.25, 0.5]}
    (figure,) = drawn(monkeypatch, lambda: architecture_picture({"a": Architecture(genes)}))
    figure.canvas.draw()  # how many ticks there are depends on the room that is left
    ticks = {axes.get_ylabel(): axes.get_yticks() for axes in figure.axes}
    assert all(tick == int(tick) for name in ("heads", "ffn dim") for tick in ticks[name])
    assert any(tick != int(tick) for tick in ticks["share"])


def test_a_course_of_few_evaluations_has_whole_ticks(monkeypatch):
    (figure,) = drawn(monkeypatch, lambda: plots.progress({"a": [3.0, 2.0, 1.0]}))
    assert all(tick == int(tick) for tick in figure.axes[0].get_xticks())


def test_dots_stand_out_from_white(monkeypatch):
    """Contrast of at least 3 to 1, as WCAG asks of graphics, with the transparency in it."""
    (figure,) = drawn(monkeypatch, lambda: plots.pareto([(1.0, 2.0), (2.0, 1.0)]))
    red, green, blue, alpha = figure.axes[0].collections[0].get_facecolor()[0]
    linear = [((1 - alpha + alpha * part + 0.055) / 1.055) ** 2.4 for part in (red, green, blue)]
    luminance = sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))
    assert 1.05 / (luminance + 0.05) > 3


def test_the_front_in_both_directions():
    points = [(1.0, 5.0), (2.0, 6.0), (2.0, 4.0), (3.0, 4.0), (3.0, 7.0), (1.0, 5.5)]
    assert plots.pareto_front(points) == [(1.0, 5.0), (2.0, 4.0)]
    assert plots.pareto_front(points, maximised=True) == [(1.0, 5.5), (2.0, 6.0), (3.0, 7.0)]
    assert plots.pareto_front([]) == []
    assert plots.fronts({"a": points, "b": []}, "x", "y").startswith(b"\x89PNG")


@pytest.mark.parametrize(
    "picture",
    [
        lambda: plots.pareto([], []),
        lambda: plots.pareto([(1.0, 2.0)], [plots.Mark("only", 1.0, 2.0)], [1.5]),
        lambda: plots.agreement({"none": ([], [])}),
        lambda: plots.agreement({"one": ([1.0], [1.1]), "two": ([2.0, 3.0], [2.0, 2.5])}),
        lambda: plots.progress({}),
        lambda: plots.progress({"a": [3.0, float("nan"), 2.0], "b": []}),
        lambda: plots.curves({"a": ([1.0, 2.0], [3.0, float("nan")]), "b": ([], [])}, "x", "y"),
        lambda: plots.bars({}, "x"),
        lambda: plots.bars({"loss": {"a": 0.5, "b": 0.0}, "other": {"a": 1.0}}, "x"),
        lambda: plots.scores([plots.Mark("x", 1.0, 20.0), plots.Mark("y", 2.0, 30.0)]),
    ],
)
def test_pictures_are_drawn_from_any_amount_of_data(picture):
    assert picture().startswith(PNG)


def test_matplotlib_is_imported_late():
    code = "import sys, nas_core.report; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_bars_are_ordered_by_the_first_series(monkeypatch):
    figures = []
    original = plots.png
    monkeypatch.setattr(plots, "png", lambda figure: (figures.append(figure), original(figure))[1])
    genes = {f"decoder.some_long_name_{i}": i / 15 for i in range(15)}
    plots.bars({"loss": genes, "latency": dict.fromkeys(genes, 0.5)}, "tau")
    (axes,) = figures[0].axes
    assert [text.get_text() for text in axes.get_yticklabels()] == sorted(genes, key=lambda name: -genes[name])
    assert axes.yaxis_inverted() and len(axes.patches) == 30
    boxes = [text.get_window_extent() for text in axes.get_yticklabels()]
    assert all(above.y0 > below.y1 for above, below in itertools.pairwise(boxes))  # no name covers another


def test_numbers_of_near_limits_stand_in_different_lines() -> None:
    assert plots.limit_lines([2.05, 1.9, 1.91, 1.92], [1.7, 2.05]) == [(1.9, 0), (1.91, 1), (1.92, 2), (2.05, 0)]
    assert plots.limit_lines([8.0], [8.0]) == [(8.0, 0)]
    shown = interactive.fronts([interactive.Cloud("a", [1.7, 2.05], [3.0, 2.0], [0, 1])], "x", "y", [1.9, 1.91])
    assert [note.get("yshift", 0) for note in shown["layout"]["annotations"]] == [0, -16]


def test_names_of_points_cover_no_other_name_and_stay_in_the_picture() -> None:
    points = [(0.0, 0.0), (10.0, 10.0)]
    left = [("≤ 1.8 ms", 0.0, 5.0), ("≤ 1.9 ms", 0.0, 5.0), ("≤ 2 ms", 0.0, 5.0)]
    assert plots.name_places(left, points) == [("top", "right"), ("bottom", "right"), None]
    assert plots.name_places([("≤ 8 ms", 5.0, 5.0), ("", 5.0, 5.0)], points) == [("bottom", "left"), None]
