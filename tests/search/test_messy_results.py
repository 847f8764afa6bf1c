"""Results that come twice, late, in another order, not at all or as no numbers: the search ends as a tidy one does."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from nas_core.search import Strategy
from nas_core.space import Architecture
from tests.contracts.strategy import quality
from tests.search.small import STRATEGIES

NO_NUMBERS = (math.nan, math.inf, -math.inf, None, "much")


def result(architecture: Architecture) -> Mapping[str, Any] | None:
    """A third of them fail, each in its way."""
    digit = int(architecture.key, 16) % 21
    if digit == 6:
        return None
    loss: Any = NO_NUMBERS[digit] if digit < len(NO_NUMBERS) else quality(architecture)
    return {"latency_ms": 1.0} if digit == 5 else {"loss": loss, "latency_ms": 1.0 / quality(architecture)}


def tidy(strategy: Strategy) -> dict[Architecture, None]:
    asked: dict[Architecture, None] = {}
    while batch := strategy.ask(1):
        asked[batch[0]] = None
        strategy.tell(batch[0], result(batch[0]))
    return asked


def messy(make: Callable[[], Strategy], stream: random.Random) -> tuple[Strategy, dict[Architecture, None]]:
    strategy, asked = make(), {}
    told: list[Architecture] = []
    rounds = 0
    while not strategy.finished:
        rounds += 1
        assert rounds < 1000
        batch = strategy.ask(stream.randrange(1, 9))
        asked.update(dict.fromkeys(batch))
        coming = [*batch, *stream.sample(strategy.waiting, min(2, len(strategy.waiting)))]
        coming = [architecture for architecture in coming if stream.random() < 0.8]  # the others are lost
        stream.shuffle(coming)
        for architecture in coming:
            strategy.tell(architecture, result(architecture))
            told.append(architecture)
            again = stream.choice(told)
            strategy.tell(again, {"loss": -1.0, "latency_ms": -1.0})
        if stream.random() < 0.3:
            state, strategy = strategy.state_dict(), make()
            strategy.load_state_dict(state)
        if not batch:
            strategy.requeue()
    return strategy, asked


@pytest.mark.parametrize("seed", [0])
@pytest.mark.parametrize("name", STRATEGIES)
def test_the_search_ends_as_a_tidy_one(name: str, seed: int) -> None:
    one = STRATEGIES[name](3000.0)
    asked = tidy(one)
    other, asked_too = messy(lambda: STRATEGIES[name](3000.0), random.Random(seed))
    assert set(asked_too) == set(asked)
    assert other.best() == one.best()
    assert (other.proposed, other.saved, other.generation) == (one.proposed, one.saved, one.generation)
    state, expected = other.state_dict(), one.state_dict()
    for part in ("rng", "stale", "ended", "members", "queue", "waiting"):
        assert state[part] == expected[part], part
    results, wanted = (dict(zip(map(tuple, s["told"]), s["scores"], strict=True)) for s in (state, expected))
    assert results == wanted
