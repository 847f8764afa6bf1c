"""Each latency model of whole networks through the contract."""

from __future__ import annotations

import numpy as np

from nas_core.latency.by_graph import GraphLatencyModel, NetworkLatencies
from tests.contracts.network_model import NetworkModelContract

NN_FORMER = {"dim": 32, "depth": 1, "epochs": 40, "lr": 5e-3, "batch_size": 4}


class TestFlops(NetworkModelContract):
    name = "flops"


class TestCounts(NetworkModelContract):
    name = "counts"


class TestGraphSage(NetworkModelContract):
    name = "graphsage"
    settings = {"dim": 32, "layers": 2, "epochs": 20, "lr": 1e-2}  # noqa: RUF012 - never changed


class TestKernelSum(NetworkModelContract):
    name = "kernel-sum"
    settings = {"width": 16, "epochs": 30, "batch_size": 8, "members": 2}  # noqa: RUF012 - never changed

    def test_spread_grows_with_the_prediction(self, fitted: GraphLatencyModel, data: NetworkLatencies) -> None:
        predicted, spread = fitted.predict_with_spread(data.graphs)
        assert np.array_equal(predicted, fitted.predict(data.graphs))
        assert (spread >= predicted * fitted.relative_spread).all() and (spread > 0).all()


class TestNNFormer(NetworkModelContract):
    name = "nn-former"
    settings = NN_FORMER


class TestEnsemble(NetworkModelContract):
    name = "ensemble"
    settings = {"epochs": 6}  # noqa: RUF012 - never changed

    def test_spread_grows_with_the_prediction(self, fitted: GraphLatencyModel, data: NetworkLatencies) -> None:
        predicted, spread = fitted.predict_with_spread(data.graphs)
        assert np.array_equal(predicted, fitted.predict(data.graphs))
        assert (spread > predicted * fitted.relative_spread).all()

    def test_progress_ends_at_its_end(self, data: NetworkLatencies) -> None:
        seen: list[tuple[int, int]] = []
        self.make().fit(data, progress=lambda step, steps, _: seen.append((step, steps)))
        begun = [i for i, (step, _) in enumerate(seen) if step == 1]
        ends = [*begun[1:], len(seen)]
        assert len(begun) == 2, "one run for each member"
        assert [seen[end - 1] for end in ends] == [(end - start,) * 2 for start, end in zip(begun, ends, strict=True)]


class TestNNFormerReleased(NetworkModelContract):
    name = "nn-former-released"
    settings = {"dim": 32, "depth": 1, "epochs": 60, "lr": 3e-3}  # noqa: RUF012 - never changed
