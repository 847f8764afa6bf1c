"""Decoding one position at a time, with beams that move and sentences that finish."""

from __future__ import annotations

import pytest
import torch

from tests.models.translation.tiny import ARCHITECTURES, VOCAB, build, close, every_architecture, sentences


@every_architecture
@pytest.mark.parametrize("norm_first", [False, True])
def test_step_by_step_equals_all_at_once(name: str, norm_first: bool) -> None:
    net = build("neuron", norm_first=norm_first).eval()
    source, target = sentences(5, 7, 2), sentences(6, 6, 6, seed=1)
    with torch.no_grad():
        subnet = net.select(ARCHITECTURES[name])
        cache = net.start(subnet, net.encode(subnet, source))
        steps = torch.stack([net.step(subnet, tokens, cache) for tokens in target.t()], 1)
        close(steps, net(subnet, source, target))
    assert cache.length == 6


ORDERS = {
    "grows, moves, shrinks": (
        None,
        [[0, 0, 1, 1, 2, 2, 3, 3], [1, 0, 2, 2, 5, 4, 7, 7], None, [2, 3, 1, 1, 0, 5], [5, 0], [1], None],
    ),
    "beams from the start": (
        [0, 0, 1, 1, 2, 2, 3, 3],
        [[1, 0, 2, 2, 5, 4, 7, 7], [0, 0, 3, 2, 4, 4, 6, 7], [2, 3, 6, 7], None, [3, 3, 0, 1], [2, 3]],
    ),
}
"""Sentence of each row at the start, if not one row for each, and the reordering before each step."""


@pytest.mark.parametrize("orders", ORDERS)
@every_architecture
@torch.no_grad()
def test_beams_move_and_sentences_finish(name: str, orders: str) -> None:
    """After each reordering, logits equal those of the same sentences and prefixes decoded from scratch."""
    net = build("layer").eval()
    subnet = net.select(ARCHITECTURES[name])
    source = sentences(5, 7, 2, 4)
    memory = net.encode(subnet, source)
    start, moves = ORDERS[orders]
    rows = torch.arange(4) if start is None else torch.tensor(start)
    cache = net.start(subnet, memory) if start is None else net.start(subnet, memory, rows)
    generator = torch.Generator().manual_seed(2)
    prefix = torch.empty(len(rows), 0, dtype=torch.long)
    for order in moves:
        if order is not None:
            picked = torch.tensor(order)
            cache.reorder(picked)
            rows, prefix = rows[picked], prefix[picked]
        tokens = torch.randint(2, VOCAB, (len(rows),), generator=generator)
        prefix = torch.cat([prefix, tokens[:, None]], 1)
        logits = net.step(subnet, tokens, cache)
        close(logits, net(subnet, source[rows], prefix)[:, -1])
        close(logits, net.decode(subnet, prefix, memory.reorder(rows))[:, -1])
