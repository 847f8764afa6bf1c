"""Half precision, which fairseq has on CUDA only."""

import math

import pytest
import torch

from tests.fairseq_ext.running import DECODING, run

pytestmark = [
    pytest.mark.cuda,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="fp16, bf16 and amp need a CUDA device, there is none"),
]


@pytest.mark.parametrize("sampling", ["spos", "sandwich"])
@pytest.mark.parametrize("precision", ["--fp16", "--memory-efficient-fp16", "--bf16", "--amp"])
def test_half_precision(arguments, corpus, tmp_path, precision, sampling):
    on_device = [argument for argument in arguments if argument != "--cpu"]
    options = [precision, "--task", "supernet_translation", "--sampling", sampling, "--fp16-init-scale", 8]
    options += ["--criterion", "fused_label_smoothed_cross_entropy", "--max-update", 6, "--save-dir", tmp_path]
    done = run("train", *on_device, *options)
    assert done.code == 0, done.err
    losses = [values["loss"] for values in done.stats("train_inner")]
    assert len(losses) == 6 and all(map(math.isfinite, losses)) and losses[-1] < losses[0]
    path = tmp_path / "checkpoint_last.pt"
    for where in (["--cpu"], ["--fp16"]):
        decoded = run("generate", corpus, "--path", path, *DECODING[:-1], *where)
        assert decoded.code == 0 and len(decoded.hypotheses()) == 20, decoded.err
