"""Forward passes over padded batches, recorded where the device can."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from nas_core.predictor import Batch, NNFormer, NNFormerConfig
from nas_core.predictor.nn_former.cuda_graph import StaticForward
from nas_core.predictor.nn_former.scorer import Frozen, score
from tests.predictor.graphs import random_graphs
from tests.predictor.nn_former.lively import lively

CPU = torch.device("cpu")


def model() -> NNFormer:
    return lively(NNFormerConfig.accuracy(dim=32, depth=3)).eval()


@pytest.mark.parametrize("change", [{}, {"feed_forward": "vanilla"}, {"sibling_mask": "as_released"}])
@torch.inference_mode()
def test_dense_sums_give_what_lists_give(change: dict[str, str]) -> None:
    made = lively(NNFormerConfig.accuracy(dim=32, depth=3, **change)).eval()
    frozen, graphs = Frozen(made, torch.float32), random_graphs((7,) * 20)
    expected = frozen(Batch.of(graphs))
    assert expected.std() > 1e-3
    torch.testing.assert_close(frozen.dense(Batch.of(graphs)), expected, atol=1e-5, rtol=0)


@torch.inference_mode()
def test_padding_does_not_touch_the_predictions() -> None:
    frozen, graphs = Frozen(model(), torch.float32), random_graphs((7,) * 12)
    static = StaticForward(frozen.dense, 8, 7, CPU)
    assert not static.recorded
    expected = frozen(Batch.of(graphs))
    first = static(Batch.of(graphs, np.arange(8)))
    second = static(Batch.of(graphs, np.arange(8, 12)))
    assert second.shape == (4,)
    torch.testing.assert_close(torch.cat([first, second]), expected, atol=1e-5, rtol=0)


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@torch.inference_mode()
def test_recorded_on_cuda() -> None:
    made, graphs = model().cuda(), random_graphs((7,) * 700 + (5,) * 30)
    frozen = Frozen(made, torch.float32)
    assert frozen.records
    assert StaticForward(frozen.dense, 16, 7, torch.device("cuda")).recorded
    on_cpu = score(replace_device(made), graphs, "fp32")
    np.testing.assert_allclose(score(made, graphs, "fp32"), on_cpu, atol=1e-4)


def replace_device(made: NNFormer) -> NNFormer:
    other = NNFormer(made.config)
    other.load_state_dict({name: value.cpu() for name, value in made.state_dict().items()})
    return other.eval()
