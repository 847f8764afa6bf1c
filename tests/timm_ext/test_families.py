"""Families of networks that timm builds."""

from __future__ import annotations

import pytest

from nas_core.latency.by_graph.families import Family, network_families
from tests.latency.by_graph.families.contract import check_family
from timm_ext.families import FAMILIES


@pytest.mark.onnx
@pytest.mark.parametrize("member", FAMILIES, ids=lambda member: member.name)
def test_two_networks(member: Family) -> None:
    check_family(member, samples=2)


def test_they_are_found() -> None:
    known = network_families()
    assert all(known[member.name] is member for member in FAMILIES) and len(FAMILIES) == 7
