"""What stands in the pictures of a search."""

from nas_core.report import architecture, architecture_picture, plots
from nas_core.space import Architecture


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
