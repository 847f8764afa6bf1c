"""Families of the core: every one of them, and how families are found."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from nas_core.errors import MissingHostError, UnknownChoiceError
from nas_core.latency.by_graph.families import registry
from nas_core.latency.by_graph.families.family import Family
from nas_core.latency.by_graph.families.images import NASBENCH201
from nas_core.latency.by_graph.families.registry import CORE, chosen_families, network_families
from tests.latency.by_graph.families.contract import check_family


@pytest.mark.onnx
@pytest.mark.parametrize("member", CORE, ids=lambda member: member.name)
def test_random_networks(member: Family) -> None:
    check_family(member)


def test_a_cell_computes_what_its_string_says() -> None:
    settings = {"resolution": 32, "cell": "|skip_connect~0|+|none~0|none~1|+|skip_connect~0|skip_connect~1|none~2|"}
    network, _ = NASBENCH201.network({**settings, "cells": 1, "widths": [8, 8, 8]})
    x = torch.randn(1, 8, 4, 4)
    torch.testing.assert_close(network[2](x), 2 * x)


def only(monkeypatch: pytest.MonkeyPatch, **loaded: Any) -> None:
    """Let adapters of these names have these families, or raise when they are imported."""

    def load(what: str, target: str) -> Any:
        value = loaded[target.partition("_ext")[0]]
        if isinstance(value, Exception):
            raise value
        return value

    targets = {name: f"{name}_ext.families:FAMILIES" for name in loaded}
    monkeypatch.setattr(registry, "adapter_parts", lambda part: targets if part == "network_families" else {})
    monkeypatch.setattr(registry, "import_object", load)


def test_adapters_add_families_and_absent_hosts_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    more = Family("more", "", CORE[0].sample, CORE[0].build)
    only(monkeypatch, b=MissingHostError("b needs b: pip install b"), a=[more])
    families = network_families()
    assert families["more"] is more and isinstance(families["b"], MissingHostError)
    assert [chosen.name for chosen in chosen_families()] == [*(core.name for core in CORE), "more"]
    assert [chosen.name for chosen in chosen_families("more, alexnet")] == ["alexnet", "more"]
    with pytest.raises(UnknownChoiceError, match=r"'rsnet': expected one of all, alexnet, .*more.*pip install b"):
        chosen_families("alexnet,rsnet")
