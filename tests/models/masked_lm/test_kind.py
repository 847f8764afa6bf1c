"""Masked language models as a kind of network."""

from __future__ import annotations

from torch import nn

from nas_core.space import SearchSpace
from tests.contracts.network_kind import NetworkKindContract
from tests.models.masked_lm.tiny import MIXED, SPACE


def without_tables(network: nn.Module) -> int:
    names = dict(network.named_parameters())
    left_out = [name for name in names if name.endswith(("net.embedding.weight", "positions.table", "net.head.bias"))]
    assert len(left_out) == 3
    return sum(parameter.numel() for name, parameter in names.items() if name not in left_out)


class TestSoftmax(NetworkKindContract):
    name = "masked_lm"
    settings = {"vocab": 30, "batch": 2}  # noqa: RUF012

    def space(self) -> SearchSpace:
        return SPACE

    def counted(self, network: nn.Module) -> int:
        return without_tables(network)


class TestMixedAttention(TestSoftmax):
    def space(self) -> SearchSpace:
        return MIXED
