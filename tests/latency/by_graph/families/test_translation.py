"""Translation networks as a family: the exported parts, and the operations in their files."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import torch

from nas_core.latency import TimingConfig
from nas_core.latency.by_graph.dataset.export import calibrate, exported
from nas_core.latency.by_graph.dataset.runtimes import RUNTIMES, workload
from nas_core.latency.by_graph.families.translation import TRANSLATION
from nas_core.models.translation.workload import TranslationWorkloadConfig
from nas_core.space import get_space

pytestmark = pytest.mark.onnx
SMALL = {
    "qkv_dim": 128,
    "encoder.embed_dim": 96,
    "encoder.layers": 2,
    "encoder.ffn_dim": [256, 256],
    "encoder.self_heads": [2, 4],
    "encoder.self_attention": ["linear", "softmax"],
    "decoder.embed_dim": 128,
    "decoder.layers": 2,
    "decoder.ffn_dim": [256, 256],
    "decoder.self_heads": [2, 4],
    "decoder.cross_heads": [4, 2],
    "decoder.arbitrary_cross": [1, -1],
    "decoder.self_attention": ["softmax", "linear"],
    "decoder.cross_attention": ["linear", "softmax"],
}
COMMON = {"architecture": SMALL, "vocabulary": 300, "source_length": 6}
ENCODER = {**COMMON, "part": "encoder"}
STEP = {**COMMON, "part": "decoder_step", "one_table": True, "past_length": 3, "rows": 2}


@pytest.mark.parametrize(
    "settings", [ENCODER, STEP, {**STEP, "past_length": 1, "rows": 1}], ids=["encoder", "step", "one"]
)
def test_parts_compute_the_same_in_both_runtimes(settings: Any) -> None:
    network, inputs = TRANSLATION.network(settings)
    expected = calibrate(network, inputs)
    content = exported(network, inputs)
    timing = TimingConfig(repeats=1, warmup=0)
    for name in RUNTIMES:
        outputs = workload(name, network, inputs, content, timing).outputs()
        for output, value in zip(outputs, expected, strict=True):
            np.testing.assert_allclose(output, value.float().numpy(), atol=0.02 * float(value.float().abs().max()))
    if settings["part"] == "encoder":
        assert [(x.dtype, tuple(x.shape)) for x in inputs] == [(torch.int64, (1, 6))]
        assert [tuple(x.shape) for x in expected][:2] == [(1, 1, 1, 6), (1, 4, 64, 32)], (
            "a mask, sums of both layers read"
        )
        return
    rows, past = settings["rows"], settings["past_length"]
    assert [tuple(x.shape) for x in inputs][:3] == [(rows,), (), (rows, 1, 1, 6)]
    assert expected[0].shape == (rows, 300)
    assert (rows, 2, past, 64) in [tuple(x.shape) for x in inputs], "keys of softmax attention"
    assert (rows, 2, past + 1, 64) in [tuple(x.shape) for x in expected]


@pytest.mark.parametrize("name", ["hat_small", "mformer_translation_small"])
def test_predicted_architectures_have_no_other_operations(name: str) -> None:
    from nas_core.graph.onnx.reader import read_onnx
    from nas_core.latency.by_graph.predict import read_module
    from nas_core.models import kind_of

    plain = {**SMALL, **{gene: ["softmax"] * 2 for gene in SMALL if gene.endswith("_attention")}}
    settings = [{**each, "architecture": genes} for each, genes in itertools.product((ENCODER, STEP), (SMALL, plain))]
    read = [read_onnx(exported(*TRANSLATION.network(each)), warn=False) for each in settings]
    assert not any(each.unknown for each in read)
    operations = {int(op) for each in read for op in each.graph.ops}
    space, config = get_space(name), TranslationWorkloadConfig(source_vocab=40, target_vocab=40, beam=2)
    for architecture in (space.smallest(), space.sample(np.random.default_rng(0))):
        for part in kind_of(space).exports(space, architecture, config):
            expected = read_module(part.module.requires_grad_(False), part.inputs)
            assert {int(op) for op in expected.graph.ops} <= operations
