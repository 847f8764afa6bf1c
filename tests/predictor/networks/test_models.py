"""Each kind of latency model of whole networks through the contract."""

from __future__ import annotations

from tests.contracts.network_model import NetworkModelContract

NN_FORMER = {"dim": 32, "depth": 1, "epochs": 40, "lr": 5e-3, "batch_size": 4}


class TestFlops(NetworkModelContract):
    kind = "flops"


class TestFlopsAccess(NetworkModelContract):
    kind = "flops-access"


class TestCounts(NetworkModelContract):
    kind = "counts"


class TestTrees(NetworkModelContract):
    kind = "trees"


class TestGraphSage(NetworkModelContract):
    kind = "graphsage"
    settings = {"dim": 32, "layers": 2, "epochs": 20, "lr": 1e-2}  # noqa: RUF012 - never changed


class TestGraphSagePriced(TestGraphSage):
    kind = "graphsage-priced"


class TestNNFormer(NetworkModelContract):
    kind = "nn-former"
    settings = NN_FORMER


class TestNNFormerUnpriced(NetworkModelContract):
    kind = "nn-former-unpriced"
    settings = NN_FORMER


class TestNNFormerGlobal(NetworkModelContract):
    kind = "nn-former-global"
    settings = NN_FORMER


class TestNNFormerReleased(NetworkModelContract):
    kind = "nn-former-released"
    settings = {"dim": 32, "depth": 1, "epochs": 60, "lr": 3e-3}  # noqa: RUF012 - never changed
