"""What softmax attention costs and holds, counted by hand, and its weights with relative positions."""

from __future__ import annotations

import pytest
import torch

from nas_core.layers.attention import SoftmaxAttention
from nas_core.layers.attention.softmax import KeysValues, naive_attention

KIND = SoftmaxAttention()


def test_multiplications_of_pairs_and_of_distances() -> None:
    assert KIND.macs(3, 5, 8, 2) == 2 * 3 * 5 * 8  # queries with keys, weights with values
    assert KIND.macs(3, 5, 8, 2, causal=True) == KIND.macs(3, 5, 8, 2)
    assert KIND.macs(3, 5, 8, 2, clip=2) == 2 * 3 * 5 * 8 + 3 * 8 * 5  # each query with -2 to 2


def test_numbers_held_are_those_of_biases() -> None:
    assert KIND.held(4, 3, 5, 8, 2) == 0
    assert KIND.held(4, 3, 5, 8, 2, 1) == (4 * 2 + 4) * 3 * 5


def test_operations_are_named_for_their_place() -> None:
    assert KIND.operation("encoder") == "encoder_self_attention"
    assert KIND.operation("cross") == "cross_attention"


@pytest.mark.parametrize("clip", [None, 1])
def test_weights_are_those_that_outputs_are_made_with(clip: int | None) -> None:
    torch.manual_seed(0)
    q, k, v = torch.randn(3, 2, 2, 5, 4).unbind(0)
    relative = None if clip is None else torch.randn(2 * clip + 1, 4)
    weights = KIND.weights(q, k, relative)
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 2, 5))
    torch.testing.assert_close(weights @ v, KIND.attend(q, k, v, relative=relative))
    if relative is None:
        torch.testing.assert_close(weights @ v, naive_attention(q, k, v, None))


def test_what_is_dropped_is_dropped_at_random() -> None:
    """Of weights that are equal over ten thousand keys of value one, as much stays as goes, on average."""
    q, ones = torch.zeros(1, 1, 1, 2), torch.ones(1, 1, 10_000, 2)
    for given in ({}, {"relative": torch.zeros(3, 2)}, {"mask": torch.ones(1, 10_000) > 0, "causal": False}):
        torch.manual_seed(0)
        out = KIND.attend(q, ones, ones, dropout=0.5, **given)  # type: ignore[arg-type]
        assert abs(float(out[0, 0, 0, 0]) - 1) < 0.1 and float(out[0, 0, 0, 0]) != 1
    q = torch.zeros(1, 1, 100, 2)
    out = KIND.attend(q, q + 1, q + 1, mask=torch.ones(1, 100) > 0, causal=True, dropout=0.5)
    assert float(out.std()) > 0


def test_a_mask_holds_beside_the_order() -> None:
    torch.manual_seed(0)
    q, k, v = torch.randn(3, 2, 2, 5, 4).unbind(0)
    mask = torch.tensor([[True, False, True, True, True], [True, True, True, False, True]])[:, None, None]
    torch.testing.assert_close(KIND.attend(q, k, v, mask=mask, causal=True), naive_attention(q, k, v, mask, True))


def test_rows_of_a_cache_are_put_in_another_order() -> None:
    keys, values = torch.arange(3.0).view(3, 1, 1, 1), torch.arange(3.0, 6.0).view(3, 1, 1, 1)
    moved = KeysValues(keys, values).reorder(torch.tensor([2, 2, 0]))
    assert moved.keys.flatten().tolist() == [2, 2, 0] and moved.values.flatten().tolist() == [5, 5, 3]
    assert moved.tensors() == (moved.keys, moved.values)
