"""Batches that are put together on the device are those that the host would make."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from nas_core.predictor import NNFormerConfig
from nas_core.predictor.nn_former.packed import PackedBatch, PackedSet, PackedTopology, Pairs
from tests.host_reads import no_host_reads
from tests.predictor.graphs import random_graphs

GRAPHS = random_graphs((3, 40, 1, 17, 40, 200, 2), seed=3, features=True, density=0.3)


def assert_equal(ours: object, expected: object) -> None:
    """All tensors of two dataclasses, and of those in them."""
    assert type(ours) is type(expected)
    for field in dataclasses.fields(ours):  # type: ignore[arg-type]
        a, b = getattr(ours, field.name), getattr(expected, field.name)
        if field.name in ("edges", "largest"):
            continue
        if isinstance(b, torch.Tensor):
            assert a.dtype == b.dtype and torch.equal(a.cpu(), b), field.name
        elif dataclasses.is_dataclass(b):
            assert_equal(a, b)
        elif isinstance(b, tuple) and b and isinstance(b[0], Pairs):
            for first, second in zip(a, b, strict=True):
                assert_equal(first, second)
        else:
            assert a == b, field.name


@pytest.mark.parametrize("attention", ["siblings", "global"])
@pytest.mark.parametrize("rows", [[5, 0, 0, 3], [2], [2, 2], list(range(7))])
def test_batches(device: str, attention: str, rows: list[int]) -> None:
    config, chosen = NNFormerConfig.latency(attention=attention), np.array(rows)
    kept = PackedSet.of(GRAPHS, config, torch.device(device))
    index = torch.from_numpy(chosen).to(device)
    with no_host_reads(device):
        batch, topology = kept.take(chosen, index)
    expected = PackedBatch.of(GRAPHS.take(chosen))
    assert_equal(batch, expected)
    assert expected.edges is not None and batch.most_nodes == expected.most_nodes
    assert batch.largest == int(GRAPHS.ops.max())
    assert_equal(topology, PackedTopology.of(expected.edges, expected.lengths, config))
