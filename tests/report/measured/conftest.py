"""The made-up machine on which architectures are measured."""

from __future__ import annotations

import pytest

from nas_core.latency import protocol
from tests.latency.by_genes.machine import Machine


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    machine = Machine()
    monkeypatch.setattr(protocol, "time", machine)
    return machine
