"""Results of searches over NNI's model spaces: told, replayed, recorded."""

from __future__ import annotations

import pytest

from nas_core.search import EvolutionConfig, HATEvolution
from nni_ext.nas.evaluations import Evaluations
from nni_ext.nas.spaces import flat_space

SMALL = EvolutionConfig(iterations=3, population=6, parents=3, mutations=2, crossovers=1)


def evaluations() -> Evaluations:
    flat = flat_space("x", {"a": [1, 2, 3, 4], "b": [(1, 1), (2, 2)], "c": ["p", "q", "r"]})
    return Evaluations(HATEvolution(flat.space, (), SMALL, metric="-metric"), flat, (), True)


def fed(one: Evaluations, results: int = 99) -> Evaluations:
    """Told ``results`` results, each third of them a failure."""
    while len(one.entries) < results and (asked := one.search.ask(1)):
        one.tell(asked[0], asked[0]["a"] + len(asked[0]["b"]) if len(one.entries) % 3 else None)  # type: ignore[arg-type, operator]
    return one


@pytest.mark.parametrize("missing", [0, 4])
def test_replayed_in_any_order(missing: int) -> None:
    whole = fed(evaluations())
    known = {entry.architecture: entry.metric for entry in reversed(whole.entries)}
    lost = whole.entries[missing].architecture
    again = evaluations()
    again.replay({architecture: metric for architecture, metric in known.items() if architecture != lost})
    asked = again.search.ask(1)
    assert asked == [lost]
    again.tell(lost, known[lost])
    assert not again.search.ask(1) and again.search.finished
    assert {entry.architecture: entry.metric for entry in again.entries} == known
