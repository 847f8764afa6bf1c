"""The 192 and 40 numbers."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from nas_core.errors import UnknownChoiceError
from nas_core.graph import Graph, GraphError, Graphs
from nas_core.graph.onnx import node_features, onnx_graph, static_features
from nas_core.predictor.nn_former.batch import Batch
from nas_core.predictor.nn_former.config import NNFormerConfig
from nas_core.predictor.nn_former.model import NNFormer, sinusoids
from tests.graph.onnx.models import residual

pytestmark = pytest.mark.onnx


def test_they_are_what_the_latency_model_embeds() -> None:
    graph = onnx_graph(residual())
    model = NNFormer(NNFormerConfig.latency(dim=16, depth=1))
    batch = Batch.of(Graphs.of([graph]))
    features = torch.from_numpy(node_features(graph))
    assert features.shape == (9, 192)
    torch.testing.assert_close(model.embed(features), model.embedded(batch)[0], atol=1e-4, rtol=1e-4)
    assert batch.static is not None
    expected = sinusoids(batch.static, 5).flatten()
    np.testing.assert_allclose(static_features(graph), expected.numpy(), atol=1e-5)


def test_the_latency_model_reads_such_graphs() -> None:
    graphs = Graphs.of([onnx_graph(residual(c)) for c in (8, 16, 24)])
    milliseconds = NNFormer(NNFormerConfig.latency(dim=16, depth=1))(Batch.of(graphs))
    assert milliseconds.shape == (3,) and bool((milliseconds > 0).all())


def test_as_released_inputs_have_no_code() -> None:
    graph = onnx_graph(residual(), features="released")
    codes = node_features(graph, "released")[:, :32]
    assert codes.sum(1).tolist() == [0, *[1] * 8] and codes[1, 0] == 1
    assert node_features(graph)[:, :32].sum() == 9


def test_first_and_last_frequencies() -> None:
    graph = Graph([3], [], attributes=[[2, 0, 0, 0, 0, 0, 0, 0]], shapes=[[5, 0, 0, 0]], static=[1, 0, 0, 0])
    features = node_features(graph)[0]
    assert features[3] == 1 and features[:32].sum() == 1
    np.testing.assert_allclose(features[32:34], [np.sin(2), np.cos(2)], rtol=1e-6)
    slowest = 2 * 10000**-0.8
    np.testing.assert_allclose(features[40:42], [np.sin(slowest), np.cos(slowest)], rtol=1e-5)
    np.testing.assert_allclose(features[112 + 18], np.sin(5 * 10000**-0.9), rtol=1e-5)


def test_other_graphs_are_refused() -> None:
    plain = Graph([0, 1], [(0, 1)])
    for refused in (node_features, static_features):
        with pytest.raises(GraphError, match="read_onnx"):
            refused(plain)
    with pytest.raises(UnknownChoiceError, match="released"):
        node_features(plain, "other")
