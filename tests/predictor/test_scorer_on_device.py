"""Recorded passes give what plain ones give: in turns, on another stream, on a device that is not the current one."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext

import numpy as np
import pytest
import torch

from nas_core.predictor import NNFormer, NNFormerConfig
from nas_core.predictor.nn_former.batch import Batch
from nas_core.predictor.nn_former.scorer import Frozen, Scorer, StaticForward, score
from tests.devices import PRECISIONS, close_in
from tests.predictor.accelerated import as_accelerator  # noqa: F401 - a fixture
from tests.predictor.graphs import lively, random_graphs

pytestmark = pytest.mark.usefixtures("as_accelerator")
GRAPHS = random_graphs((7,) * 700 + (5,) * 30)


def model_of(seed_change: float = 0.0, **changes: object) -> NNFormer:
    model = lively(NNFormerConfig.accuracy(**{"dim": 32, "depth": 3, **changes}))
    with torch.no_grad():
        model.head.bias.add_(seed_change)
    return model.eval()


def plain(model: NNFormer) -> np.ndarray:
    with torch.inference_mode():
        return model.cpu()(Batch.of(GRAPHS)).double().numpy()


def other_stream(device: str) -> AbstractContextManager[object]:
    if torch.device(device).type != "cuda":
        return nullcontext()
    stream = torch.cuda.Stream(torch.device(device))
    stream.wait_stream(torch.cuda.current_stream(torch.device(device)))
    return torch.cuda.stream(stream)


@pytest.mark.parametrize("change", [{}, {"attention": "global"}, {"sibling_mask": "as_released"}])
@pytest.mark.parametrize("precision", PRECISIONS)
def test_every_precision(device: str, precision: str, change: dict[str, str]) -> None:
    if precision == "tf32" and device == "cpu":
        pytest.skip("a CPU has no TF32")
    expected = plain(model_of(**change))
    scorer = Scorer(model_of(**change).to(device), precision)
    scores = scorer(GRAPHS)
    close_in(precision, torch.from_numpy(scores), torch.from_numpy(expected), times=20)
    np.testing.assert_array_equal(scorer(GRAPHS), scores)


def test_recorded_where_there_are_graphs(device: str) -> None:
    frozen = Frozen(model_of().to(device), torch.float32)
    static = StaticForward(frozen.dense, 16, 7, torch.device(device))
    assert static.recorded == (torch.device(device).type == "cuda")
    part = Batch.of(GRAPHS.take(np.arange(16)), device=device)
    expected = static(part)
    torch.testing.assert_close(frozen.dense(part), expected, rtol=1e-5, atol=1e-6)


def test_memory_of_a_pass_is_used_again(device: str) -> None:
    """Results of earlier batches stay, whichever stream the next is in."""
    frozen = Frozen(model_of().to(device), torch.float32)
    static = StaticForward(frozen.dense, 16, 7, torch.device(device))
    parts = [Batch.of(GRAPHS.take(np.arange(start, start + 16)), device=device) for start in range(0, 160, 16)]
    scores = []
    for number, part in enumerate(parts):
        if number % 3 == 2:
            with other_stream(device):
                scores.append(static(part))
        else:
            scores.append(static(part))
    if torch.device(device).type == "cuda":
        torch.cuda.synchronize(device)
    for part, predicted in zip(parts, scores, strict=True):
        torch.testing.assert_close(predicted, frozen.dense(part), rtol=1e-5, atol=1e-6)


def test_threads_do_not_mix(device: str) -> None:
    expected, scorer = plain(model_of()), Scorer(model_of().to(device), "fp32")
    parts = [np.arange(start, start + 25) for start in range(0, 700, 25)]
    with ThreadPoolExecutor(4) as pool:
        scores = list(pool.map(lambda rows: scorer(GRAPHS.take(rows)), parts * 3))
    np.testing.assert_allclose(np.concatenate(scores), np.tile(expected[:700], 3), atol=1e-4)


def test_models_of_two_devices_in_turns(second_device: str) -> None:
    first = "cuda:0" if second_device.startswith("cuda") else "cpu"
    models = [model_of(), model_of(seed_change=3.0)]
    expected = [plain(model) for model in models]
    assert np.abs(expected[0] - expected[1]).min() > 1
    scorers = [Scorer(model.to(place), "fp32") for model, place in zip(models, (first, second_device), strict=True)]
    for start in range(0, 700, 100):
        rows = np.arange(start, start + 100)
        for scorer, wanted in zip(scorers, expected, strict=True):
            np.testing.assert_allclose(scorer(GRAPHS.take(rows)), wanted[rows], atol=1e-4)


def test_a_scorer_keeps_the_weights_it_was_made_with(device: str) -> None:
    model = model_of().to(device)
    scorer = Scorer(model, "fp32")
    before = scorer(GRAPHS)
    with torch.no_grad():
        model.blocks[0].attention.qkv.weight.zero_()
    np.testing.assert_array_equal(scorer(GRAPHS), before)
    assert np.abs(score(model, GRAPHS, "fp32") - before).max() > 1e-4
