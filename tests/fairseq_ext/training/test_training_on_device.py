"""fairseq-train on any device, in every precision that the device has, and what its checkpoints then are good for."""

import math

import pytest
import torch

pytest.importorskip("fairseq")

from fairseq.criterions.label_smoothed_cross_entropy import LabelSmoothedCrossEntropyCriterion
from fairseq.utils import move_to_cuda

from fairseq_ext.checkpoint import read_checkpoint
from fairseq_ext.criterion import FusedLabelSmoothedCrossEntropy
from fairseq_ext.task import SupernetTranslationConfig, SupernetTranslationTask
from nas_core.space import Architecture, get_space
from nas_core.space.mformer import ATTENTION_GENES
from tests.fairseq_ext.running import DECODING, Backward, build, passed, run, set_up
from tests.host_reads import no_host_reads

OLD = ("--fp16", "--memory-efficient-fp16", "--amp")
"""Precisions of fairseq-train other than float32, on GPUs alone."""
NEW = ("--tf32", "--bf16", "--memory-efficient-bf16")
"""The same, from Ampere on."""
MFORMER = [
    "--arch", "mos_mformer_translation_small", "--search-space", "mformer_translation_small", "--lr", 0.002,
]  # fmt: skip
CRITERION = ["--criterion", "fused_label_smoothed_cross_entropy"]


def flags(device):
    """What the device trains in, float32 first."""
    if device == "cpu":
        return [""]
    return ["", *OLD, *(NEW if torch.cuda.get_device_capability(device) >= (8, 0) else ())]


@pytest.fixture(autouse=True)
def products():
    """``--tf32`` is set for the process."""
    before = torch.get_float32_matmul_precision()
    yield
    torch.set_float32_matmul_precision(before)


@pytest.fixture
def command(arguments, device):
    """Six updates on the device."""
    on_device = [argument for argument in arguments if argument != "--cpu" or device == "cpu"]
    options = ["--task", "supernet_translation", "--valid-random", 0, "--max-update", 6, "--fp16-init-scale", 8]
    options += ["--dropout", 0.0]  # masks differ between numbers of different size
    return [*on_device, *options, *CRITERION]


@pytest.mark.parametrize(("network", "sampling"), [(["--mos", "layer"], "sandwich"), (MFORMER, "spos")])
def test_a_supernet_trains_in_every_precision(command, device, tmp_path, network, sampling):
    losses = {}
    for flag in flags(device):
        options = [*network, "--sampling", sampling, "--save-dir", tmp_path / flag, *([flag] if flag else [])]
        done = passed("train", *command, *options)
        losses[flag] = [values["loss"] for values in done.stats("train_inner")]
        assert len(losses[flag]) == 6 and all(map(math.isfinite, losses[flag])), (flag, losses)
        assert losses[flag][-1] < losses[flag][0], (flag, losses)
        assert losses[flag][0] == pytest.approx(losses[""][0], rel=0.03), (flag, losses)
        assert math.isfinite(done.stats("valid")[-1]["valid_loss"])


def test_what_was_trained_in_half_precision_decodes_anywhere(command, device, corpus, tmp_path):
    """Also in halves; fairseq casts weights and tables, and what decoding keeps has to follow."""
    options = [*MFORMER, "--save-dir", tmp_path, *([] if device == "cpu" else ["--fp16"])]
    passed("train", *command, *options)
    genes = get_space("mformer_translation_small").largest().to_dict()
    Architecture({**genes, **dict.fromkeys(ATTENTION_GENES, ["linear"] * 3)}).save(tmp_path / "a.json")
    decoding = [*DECODING[:-1], "--model-overrides", repr({"eval_subnet": str(tmp_path / "a.json")})]
    results = {}
    for where in ([], ["--fp16"], ["--cpu"], ["--cpu", "--fp16"]):
        if device == "cpu" and "--cpu" not in where:
            continue
        done = passed("generate", corpus, "--path", tmp_path / "checkpoint_last.pt", *decoding, *where)
        results[" ".join(where)] = {row: score for row, (score, _) in done.hypotheses().items()}
    exact = results["--cpu"]
    assert len(exact) == 20
    for where, scores in results.items():
        assert scores == pytest.approx(exact, abs=0.05), where


def test_tf32_is_kept_in_the_checkpoint_and_said(command, device, tmp_path):
    done = run("train", *command, "--tf32", "--max-update", 1, "--save-dir", tmp_path)
    if device == "cpu":
        assert done.code == 2 and "--tf32 needs a CUDA device, but training runs on the CPU" in done.err
        assert torch.get_float32_matmul_precision() == "highest" and not list(tmp_path.iterdir())
        return
    if "--tf32" not in flags(device):
        assert done.code == 2 and "has no tf32" in done.err
        return
    assert done.code == 0, done.err
    assert "matrix products are computed in TF32 (--tf32)" in done.out
    assert torch.get_float32_matmul_precision() == "high"
    assert read_checkpoint(tmp_path / "checkpoint_last.pt")["cfg"]["model"].tf32


@pytest.mark.parametrize(
    ("sampling", "kind"),
    [("spos", LabelSmoothedCrossEntropyCriterion), ("sandwich", FusedLabelSmoothedCrossEntropy)],
)
def test_a_training_step_does_not_wait_for_the_device(corpus, pair, batches, device, sampling, kind):
    task = set_up(SupernetTranslationTask, SupernetTranslationConfig, corpus, supernet_sampling=sampling)
    criterion = kind(task, sentence_avg=False, label_smoothing=0.1)
    model = build(pair, mos="neuron").to(device)
    batch = move_to_cuda(batches[0], device=torch.device(device))
    task.train_step(batch, model, criterion, Backward(), 0)  # what is made once
    with no_host_reads(device):
        loss, _, log = task.train_step(batch, model, criterion, Backward(), 1)
    assert math.isfinite(float(loss)) and math.isfinite(float(log["loss"]))
    assert all(torch.isfinite(p.grad).all() for p in model.parameters() if p.grad is not None)
