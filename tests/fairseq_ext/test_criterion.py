"""``fused_label_smoothed_cross_entropy`` against fairseq's own."""

import pytest
import torch
from fairseq.criterions.label_smoothed_cross_entropy import LabelSmoothedCrossEntropyCriterion

from fairseq_ext.criterion import FusedLabelSmoothedCrossEntropy
from tests.fairseq_ext.running import USER_DIR, assert_one_line, build, run, subnet


@pytest.mark.parametrize(("share", "smoothing", "sentence_avg"), [(False, 0.0, True), (True, 0.1, False)])
def test_same_loss_gradient_and_log(pair, batches, share, smoothing, sentence_avg):
    model = build(pair, share_decoder_input_output_embed=share)
    results = []
    for kind in (LabelSmoothedCrossEntropyCriterion, FusedLabelSmoothedCrossEntropy):
        criterion = kind(pair, sentence_avg=sentence_avg, label_smoothing=smoothing)
        with model.use_architecture(subnet()):
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
def test_options_that_need_logits_use_fairseqs_loss(pair, batches, options):
    model = build(pair).eval()
    logs = [
        kind(pair, sentence_avg=False, label_smoothing=0.1, **options)(model, batches[0])[2]
        for kind in (LabelSmoothedCrossEntropyCriterion, FusedLabelSmoothedCrossEntropy)
    ]
    assert logs[0].keys() == logs[1].keys()
    assert float(logs[0]["loss"]) == pytest.approx(float(logs[1]["loss"]))


def test_other_models_are_rejected(corpus, tmp_path):
    sizes = ["--encoder-embed-dim", 8, "--decoder-embed-dim", 8, "--encoder-ffn-embed-dim", 8]
    sizes += ["--encoder-layers", 1, "--decoder-layers", 1, "--encoder-attention-heads", 2]
    done = run(
        "train", corpus, "--user-dir", USER_DIR, "--arch", "transformer", *sizes, "--batch-size", 8, "--cpu",
        "--criterion", "fused_label_smoothed_cross_entropy", "--optimizer", "sgd", "--lr", 0.1, "--num-workers", 0,
        "--save-dir", tmp_path, "--max-update", 1,
    )  # fmt: skip
    assert_one_line(done, "fused_label_smoothed_cross_entropy", "supports only models of nas-ext")
    assert not list(tmp_path.iterdir())
