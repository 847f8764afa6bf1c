"""Pictures of squares, pairs and curves are drawn, equal for equal input, and follow what is asked for."""

from __future__ import annotations

from nas_core.report.compared import lines, pairs, squares

PNG = b"\x89PNG"


def test_squares_of_several_panels() -> None:
    near, far = [[0.0, 0.01], [0.01, 0.0]], [[0.0, 0.5], [0.5, 0.0]]
    drawn = squares(["a", "b"], {"near": near, "far": far}, "distance")
    assert drawn.startswith(PNG) and drawn == squares(["a", "b"], {"near": near, "far": far}, "distance")
    assert drawn != squares(["a", "b"], {"near": near, "far": near}, "distance")
    assert squares(["a", "b"], {"none": [[0.0, 0.0], [0.0, 0.0]]}, "distance").startswith(PNG)


def test_pairs_with_and_without_the_line_of_equal_values() -> None:
    series = {"one": ([1.0, 2.0], [1.1, 2.2]), "other": ([1.0, 2.0], [1.4, 2.1])}
    assert pairs(series, "x", "y").startswith(PNG)
    assert pairs(series, "x", "y") != pairs(series, "x", "y", equal=False)


def test_curves_in_more_panels_than_fit_in_a_row() -> None:
    panels = {f"network {index}": {"one": ([0.0, 10.0], [3.0, 2.0]), "other": ([0.0], [2.5])} for index in range(5)}
    drawn = lines(panels, {"network 1": 2.2}, "updates", "loss", "from scratch")
    assert drawn.startswith(PNG) and drawn == lines(panels, {"network 1": 2.2}, "updates", "loss", "from scratch")
    assert drawn != lines(panels, {}, "updates", "loss")
