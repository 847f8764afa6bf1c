import numpy as np
import pytest

from nas_core.latency.by_genes.features import RowFeatures, SummaryFeatures
from nas_core.space import Architecture, Choice, SearchSpace, get_space


@pytest.fixture
def space():
    return SearchSpace(
        "mixed",
        [
            Choice.make("width", [64, 32]),
            Choice.make("layers", [1, 2, 3]),
            Choice.make("ffn", [100, 200, 400], "layers", 3),
            Choice.make("kind", ["soft", "cos", "none"], "layers", 3),
        ],
    )


def test_by_hand(space):
    features = RowFeatures(space)
    architecture = Architecture({"width": 32, "layers": 2, "ffn": [400, 200], "kind": ["cos", "none"]})
    found = dict(zip(features.names, features(space.rows([architecture]))[0], strict=True))
    assert found == pytest.approx(
        {
            "width": 0.5,
            "layers": 2 / 3,
            "ffn": (1 + 0.5) / 3,
            "kind": (0.5 + 1) / 3,
            "layers=2": 1,
            "ffn=200": 1 / 3,
            "kind=cos": 1 / 3,
            "ffn*kind": (1 * 0.5 + 0.5 * 1) / 3,
        }
    )


def test_summary_gives_the_same_totals_as_rows():
    space = get_space("hat_wmt14_en_de")
    rows = space.sample_rows(np.random.default_rng(0), 200)
    by_row, by_summary = RowFeatures(space), SummaryFeatures(space)
    left = dict(zip(by_row.names, by_row(rows).T, strict=True))
    right = dict(zip(by_summary.names, by_summary(space.encode_rows(rows, "summary")).T, strict=True))
    shared = sorted(set(left) & set(right))
    assert {"decoder.ffn_dim", "decoder.layers=3"} <= set(shared)
    for name in shared:
        np.testing.assert_allclose(left[name], right[name], rtol=1e-5, err_msg=name)


def test_options_that_differ_by_layer():
    space = SearchSpace("s", [Choice.make("layers", [2]), Choice.make("size", [[1, 2, 4], [4, 2, 8]], "layers", 2)])
    features = RowFeatures(space)
    found = features(space.rows([Architecture({"layers": 2, "size": [2, 2]})]))[0]
    assert dict(zip(features.names, found, strict=True))["size=2"] == 1  # index 1 in both layers
    assert found[1] == pytest.approx((2 / 8 + 2 / 8) / 2)


def test_many_choices_pair_with_depth_only():
    choices = [Choice.make("layers", [1, 2])]
    choices += [Choice.make(f"c{i}", [1, 2], "layers", 2) for i in range(30)]
    first, second = RowFeatures(SearchSpace("big", choices)).pairs
    assert len(first) == 31 and set(np.minimum(first, second)) == {0}
