"""``fused_label_smoothed_cross_entropy`` against fairseq's own."""

import pytest
import torch
from fairseq.criterions.label_smoothed_cross_entropy import LabelSmoothedCrossEntropyCriterion

from fairseq_ext.criterion import FusedLabelSmoothedCrossEntropy
from tests.fairseq_ext.running import USER_DIR, assert_one_line, build, run, subnet


@pytest.mark.parametrize("share", [False, True], ids=["own-output", "shared-output"])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("sentence_avg", [False, True], ids=["per-token", "per-sentence"])
def test_same_loss_gradient_and_log(pair, batches, share, smoothing, sentence_avg):
    model = build(pair, share_decoder_input_output_embed=share)
    results = []
    for kind in (LabelSmoothedCrossEntropyCriterion, FusedLabelSmoothedCrossEntropy):
        criterion = kind(pair, sentence_avg=sentence_avg, label_smoothing=smoothing)
        with model.using(subnet()):
            loss, size, log = criterion(model, batches[0])
        loss.backward()
        used = {name: p.grad for name, p in model.named_parameters() if p.grad is not None}
        results.append((loss.detach(), size, log, used))
        model.zero_grad(set_to_none=True)
    theirs, ours = results
    torch.testing.assert_close(ours[0], theirs[0])
    torch.testing.assert_close(ours[3], theirs[3], rtol=1e-4, atol=1e-5)
    assert ours[1] == theirs[1] and ours[2].keys() == theirs[2].keys()
    for name, value in theirs[2].items():
        torch.testing.assert_close(torch.as_tensor(ours[2][name]), torch.as_tensor(value), msg=name)


@pytest.mark.parametrize("options", [{"report_accuracy": True}, {"ignore_prefix_size": 1}])
def test_what_needs_logits_is_left_to_fairseq(pair, batches, options):
    model = build(pair).eval()
    logs = [
        kind(pair, sentence_avg=False, label_smoothing=0.1, **options)(model, batches[0])[2]
        for kind in (LabelSmoothedCrossEntropyCriterion, FusedLabelSmoothedCrossEntropy)
    ]
    assert logs[0].keys() == logs[1].keys()
    assert float(logs[0]["loss"]) == pytest.approx(float(logs[1]["loss"]))


def test_same_training(arguments, tmp_path):
    losses = []
    for name in ("label_smoothed_cross_entropy", "fused_label_smoothed_cross_entropy"):
        done = run("train", *arguments, "--criterion", name, "--max-update", 3, "--save-dir", tmp_path / name)
        assert done.code == 0, done.err
        losses.append([values["loss"] for values in done.stats("train_inner")] + [done.stats("valid")[0]["valid_loss"]])
    assert losses[0] == pytest.approx(losses[1], abs=2e-3) and len(losses[0]) == 4


def test_other_models_are_refused(corpus, tmp_path):
    sizes = ["--encoder-embed-dim", 8, "--decoder-embed-dim", 8, "--encoder-ffn-embed-dim", 8]
    sizes += ["--encoder-layers", 1, "--decoder-layers", 1, "--encoder-attention-heads", 2]
    done = run(
        "train", corpus, "--user-dir", USER_DIR, "--arch", "transformer", *sizes, "--batch-size", 8, "--cpu",
        "--criterion", "fused_label_smoothed_cross_entropy", "--optimizer", "sgd", "--lr", 0.1, "--num-workers", 0,
        "--save-dir", tmp_path, "--max-update", 1,
    )  # fmt: skip
    assert_one_line(done, "fused_label_smoothed_cross_entropy", "mos_/hat_transformer*", "label_smoothed_cross_entropy")
    assert not list(tmp_path.iterdir())
