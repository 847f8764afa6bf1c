"""Which networks are measured."""

from __future__ import annotations

import pytest

from nas_core.errors import ConfigError
from nas_core.latency.by_graph.dataset import planned_networks
from nas_core.latency.by_graph.families import Family
from tests.latency.by_graph.dataset.tiny import ONE, TWO, build


def test_families_alternate_and_a_longer_plan_begins_like_a_shorter_one() -> None:
    long, short = (planned_networks([ONE, TWO], count, seed=3) for count in (40, 5))
    assert [network.name for network in short] == ["one_0000", "two_0000", "one_0001", "two_0001", "one_0002"]
    assert long[:5] == short
    assert len({str(network.settings) for network in long if network.family is ONE}) == 20
    assert planned_networks([ONE, TWO], 40, seed=4) != long
    alone = planned_networks([TWO], 20, seed=3)
    assert alone == [network for network in long if network.family is TWO], "whatever the other families are"


def test_batches_are_drawn() -> None:
    rigid = Family("rigid", "", TWO.sample, build, batched=False)
    planned = planned_networks([ONE, rigid], 200, seed=3, most_batch=8)
    assert {network.settings["batch"] for network in planned if network.family is ONE} == set(range(1, 9))
    assert not any("batch" in network.settings for network in planned if network.family is rigid)
    first = planned[0]
    assert [x.shape[0] for x in first.family.network(first.settings)[1]] == [first.settings["batch"]]
    assert "batch" not in planned_networks([ONE], 1, seed=3)[0].settings


def test_an_exhausted_family_is_told() -> None:
    three = Family("three", "", lambda rng: {"width": int(rng.integers(3))}, build)
    assert len(planned_networks([three], 3, seed=0)) == 3
    with pytest.raises(ConfigError, match="'three' gave no network beside 3 in 50 draws"):
        planned_networks([three], 4, seed=0)
