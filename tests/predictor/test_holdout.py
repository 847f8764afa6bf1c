"""What is held out was never learned."""

from __future__ import annotations

import numpy as np
import pytest

from nas_core.errors import NasExtError
from nas_core.predictor.files import holdout_split
from tests.predictor.graphs import random_graphs


def test_both_sides_are_everything_and_no_graph_is_on_both() -> None:
    graphs = random_graphs((6,) * 40).take(np.arange(120) % 40)  # each three times
    learned, held_out = holdout_split(graphs, 0.2, 3)
    assert sorted([*learned, *held_out]) == list(range(120)) and 24 <= len(held_out) <= 26
    assert not set(graphs.take(learned)) & set(graphs.take(held_out))
    again = holdout_split(graphs, 0.2, 3)[1]
    assert again.tolist() == held_out.tolist() != holdout_split(graphs, 0.2, 4)[1].tolist()
    assert [len(side) for side in holdout_split(graphs, 0.0, 3)] == [120, 0]


def test_shares_that_leave_too_little() -> None:
    graphs = random_graphs((6,) * 3)
    for share, message in ((-0.1, "from 0"), (1.0, "below 1"), (float("nan"), "from 0"), (0.5, "2 or more")):
        with pytest.raises(NasExtError, match=message):
            holdout_split(graphs, share, 0)
    with pytest.raises(NasExtError, match="1 of them different"):
        holdout_split(graphs.take([0] * 9), 0.3, 0)
