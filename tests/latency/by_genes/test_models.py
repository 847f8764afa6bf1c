"""Each latency model by genes through the contract."""

from __future__ import annotations

from nas_core.latency import LATENCY_MODELS
from tests.contracts.gene_latency_model import GeneLatencyModelContract


class TestLinear(GeneLatencyModelContract):
    name = "linear"


class TestMLP(GeneLatencyModelContract):
    name = "mlp"
    settings = {"hidden": 16, "layers": 2, "steps": 300, "lr": 5e-3}  # noqa: RUF012 - never changed


class TestHATMLP(GeneLatencyModelContract):
    name = "hat-mlp"
    settings = {"hidden": 16, "layers": 2, "steps": 300, "lr": 3e-3}  # noqa: RUF012 - never changed


def test_each_member_has_its_contract() -> None:
    tested = {case.name for case in GeneLatencyModelContract.__subclasses__() if case.__module__ == __name__}
    own = [(name, model) for name, model in LATENCY_MODELS.items() if model.__module__.startswith("nas_core.")]
    assert tested == {name for name, model in own if model.by == "genes"}
