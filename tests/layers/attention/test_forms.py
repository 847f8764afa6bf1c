"""Which form computes linear attention."""

from __future__ import annotations

import pytest

from nas_core.layers.attention.cosformer.forms import FORMS, chosen_form

ROWS = [
    # device, queries, keys, head dim, exporting
    (("cpu", 30, 30, 64, False), "streaming"),
    (("cpu", 8192, 8192, 64, False), "streaming"),
    (("cpu", 30, 30, 64, True), "chunked"),
    (("cuda", 30, 30, 64, True), "chunked"),
    (("cuda", 256, 256, 64, False), "dense"),
    (("cuda", 257, 257, 64, False), "chunked"),
    (("cuda", 256, 256, 32, False), "chunked"),
    (("cuda", 200, 9000, 64, False), "chunked"),
    (("cuda", 1, 9000, 64, False), "dense"),
]


@pytest.mark.parametrize(("where", "form"), ROWS)
def test_the_table(where: tuple[str, int, int, int, bool], form: str) -> None:
    assert chosen_form(*where) == form
    assert form in FORMS
