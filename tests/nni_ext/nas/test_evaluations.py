"""Results of searches over NNI's model spaces: reported, replayed, recorded."""

from __future__ import annotations

import pytest

from nas_core.search import EvolutionConfig, HATEvolution
from nni_ext.nas.evaluations import Evaluations
from nni_ext.nas.spaces import flat_space

SMALL = EvolutionConfig(iterations=3, population=6, parents=3)


def evaluations() -> Evaluations:
    flat = flat_space("x", {"a": [1, 2, 3, 4], "b": [(1, 1), (2, 2)], "c": ["p", "q", "r"]})
    return Evaluations(HATEvolution(flat.space, (), SMALL, metric="-metric"), flat, (), True)


def fed(one: Evaluations, results: int = 99) -> Evaluations:
    """Told ``results`` results, each third of them a failure."""
    while len(one.entries) < results and (proposals := one.search.ask(1)):
        one.tell(proposals[0], proposals[0]["a"] + len(proposals[0]["b"]) if len(one.entries) % 3 else None)  # type: ignore[arg-type, operator]
    return one


@pytest.mark.parametrize("missing", [0, 4])
def test_replayed_in_any_order(missing: int) -> None:
    full = fed(evaluations())
    metrics = {entry.architecture: entry.metric for entry in reversed(full.entries)}
    lost = full.entries[missing].architecture
    repeated = evaluations()
    repeated.replay({architecture: metric for architecture, metric in metrics.items() if architecture != lost})
    proposals = repeated.search.ask(1)
    assert proposals == [lost]
    repeated.tell(lost, metrics[lost])
    assert not repeated.search.ask(1) and repeated.search.finished
    assert {entry.architecture: entry.metric for entry in repeated.entries} == metrics
