"""How experts begin, their rank, and the term that keeps them apart, in trainings of fairseq."""

from __future__ import annotations

import pytest
import torch
from fairseq.criterions.label_smoothed_cross_entropy import LabelSmoothedCrossEntropyCriterion

from fairseq_ext.checkpoint import read_state
from fairseq_ext.task import SupernetTranslationConfig, SupernetTranslationTask
from nas_core.layers.mos import expert_layers, experts_alike
from nas_core.supernet import open_supernet
from tests.fairseq_ext.running import SPACE, Backward, build, gradients, run, set_up

SANDWICH = ["--task", "supernet_translation", "--sampling", "sandwich", "--valid-random", 0]


def logged(done, name):
    assert done.code == 0, done.err
    return [row[name] for row in done.stats("train_inner")]


def test_experts_of_low_rank_are_trained_kept_and_extracted(arguments, tmp_path):
    options = [*SANDWICH, "--mos", "neuron", "--mos-rank", 2, "--mos-experts", 3, "--mos-apart", 1]
    done = run("train", *arguments, *options, "--save-dir", tmp_path, "--max-update", 3)
    assert all(0 < value <= 1 for value in logged(done, "experts_alike"))
    supernet = open_supernet(tmp_path / "checkpoint_last.pt")
    layers = expert_layers(supernet.model)
    assert {layer.rank for layer in layers} == {2} and all(layer.left.any() for layer in layers)
    assert float(experts_alike(supernet.model)) < 1
    supernet.extract(SPACE.smallest(), tmp_path / "small.pt")
    static = read_state(tmp_path / "small.pt")
    assert not any("left" in name or "routers" in name for name in static["model"])
    assert "mos_apart" not in static["cfg"]["task"]
    taken = open_supernet(tmp_path / "small.pt")
    assert taken.evaluate(taken.space.largest()) == pytest.approx(supernet.evaluate(SPACE.smallest()), rel=1e-5)


@pytest.mark.parametrize("sampling", ["spos", "sandwich"])
def test_the_term_is_added_once_for_a_batch_and_shared_by_its_size(corpus, pair, batches, sampling):
    """The gradient is that without the term, and the term's own, times the tokens by which fairseq divides."""
    task = set_up(SupernetTranslationTask, SupernetTranslationConfig, corpus, supernet_sampling=sampling)
    criterion = LabelSmoothedCrossEntropyCriterion(task, sentence_avg=False, label_smoothing=0.1)
    model = build(pair, mos="layer", mos_experts=3)
    plain_loss, size, plain = task.train_step(batches[0], model, criterion, Backward(), 5)
    expected = gradients(model)
    (experts_alike(model) * 0.5 * size).backward()
    for name, gradient in gradients(model).items():
        expected[name] = expected[name] + gradient
    task.cfg.mos_apart = 0.5
    loss, _, log = task.train_step(batches[0], model, criterion, Backward(), 5)
    torch.testing.assert_close(gradients(model), expected, rtol=1e-4, atol=1e-5)
    alike = float(experts_alike(model))
    assert float(log["experts_alike"]) == pytest.approx(alike * size)
    assert float(log["loss"]) == pytest.approx(float(plain["loss"]))
    assert float(loss) == pytest.approx(float(plain_loss) + 0.5 * alike * size, rel=1e-5)
    task.train_step(batches[0], model, criterion, Backward(), 5, ignore_grad=True)
    assert all(not gradient.any() for gradient in gradients(model).values())
