"""What stands in the pictures of a search."""

from nas_core.report import plots


def test_a_limit_is_drawn_as_it_was_given(monkeypatch):
    figures = []
    original = plots.png
    monkeypatch.setattr(plots, "png", lambda figure: (figures.append(figure), original(figure))[1])
    plots.pareto([(11.0, 4.0)], limits=[11.52])
    assert [text.get_text() for text in figures[0].axes[0].texts] == ["11.52"]
