"""Random graphs of a model, and rates."""

from __future__ import annotations

import pytest

from nas_core.predictor import Batch, NNFormer, NNFormerConfig
from nas_core.predictor.nn_former.scorer import Scorer
from nas_core.predictor.speed import graphs_per_s, has_naive, naive_graphs_per_s, random_graphs

SMALL = {"dim": 16, "depth": 1}


@pytest.mark.parametrize("config", [NNFormerConfig.accuracy(**SMALL), NNFormerConfig.latency(**SMALL)])
def test_the_model_reads_its_random_graphs(config: NNFormerConfig) -> None:
    model, graphs = NNFormer(config).eval(), random_graphs((7, 3, 5), config)
    assert graphs.sizes.tolist() == [7, 3, 5] and model(Batch.of(graphs)).shape == (3,)
    assert has_naive(config) and not has_naive(NNFormerConfig.accuracy(attention="global", **SMALL))
    assert graphs_per_s(Scorer(model), graphs, 1) > 0 and naive_graphs_per_s([model] * 2, graphs, 1) > 0
    assert set(random_graphs((50,), config, operations=[3, 5]).ops.tolist()) == {3, 5}
