"""The criterion with a teacher against its definition, forward by forward."""

from __future__ import annotations

import pytest
import torch
from fairseq.criterions.label_smoothed_cross_entropy import LabelSmoothedCrossEntropyCriterion

from fairseq_ext.checkpoint import load_network, read_state
from fairseq_ext.task import SupernetTranslationConfig, SupernetTranslationTask
from nas_core.supernet import sandwich
from nas_core.supernet.teacher.losses import distillation_loss
from tests.fairseq_ext.distillation.teachers import criterion, train_plain
from tests.fairseq_ext.running import SPACE, Backward, build, set_up, subnet


@pytest.fixture(scope="module")
def task(corpus):
    task = set_up(SupernetTranslationTask, SupernetTranslationConfig, corpus, supernet_sampling="sandwich")
    task.load_dataset("train")
    return task


@pytest.fixture(scope="module")
def teachers(corpus, trained, tmp_path_factory):
    """Checkpoints by kind."""
    return {"plain": train_plain(corpus, tmp_path_factory.mktemp("plain")), "supernet": trained("neuron")}


def network(path):
    return load_network(path, read_state(path), None)[1]


def definition(model, teacher, batch, *, weight=0.5, temperature=1.0):
    """The loss of a batch, and its parts, by what fairseq's models give."""
    logits = model(**batch["net_input"])[0].flatten(0, 1)
    with torch.no_grad():
        expected = teacher(**batch["net_input"])[0].flatten(0, 1)
    target = batch["target"].flatten()
    keep = target.ne(1)
    rows = distillation_loss(logits, expected, temperature, "none")
    lprobs = logits.log_softmax(-1)
    spread = 0.1 / (logits.shape[-1] - 1)
    target_loss = -((0.9 - spread) * lprobs.gather(1, target[:, None])[:, 0] + spread * lprobs.sum(1))
    distilled = (rows * keep).sum()
    return (1 - weight) * (target_loss * keep).sum() + weight * distilled, distilled


def gradients(model):
    gradients = {name: p.grad for name, p in model.named_parameters() if p.grad is not None}
    model.zero_grad(set_to_none=True)
    return gradients


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        ("plain", {"distill_temperature": 2.0, "distill_weight": 0.3}),
        ("supernet", {"distill_weight": 1.0}),
    ],
)
def test_loss_and_gradient_are_those_of_the_definition(task, pair, batches, teachers, kind, settings):
    model = build(pair).train()
    ours = criterion(task, teachers[kind], **settings)
    with model.use_architecture(subnet()):
        loss, size, log = ours(model, batches[0])
        loss.backward()
        gradients_by_name = gradients(model)
        named = {"weight": settings.get("distill_weight", 0.5), "temperature": settings.get("distill_temperature", 1.0)}
        expected, distilled = definition(model, network(teachers[kind]), batches[0], **named)
        expected.backward()
    torch.testing.assert_close(loss, expected, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(gradients_by_name, gradients(model), rtol=1e-3, atol=1e-4)
    torch.testing.assert_close(log["distill_loss"], distilled.detach(), rtol=1e-4, atol=1e-4)
    assert size == log["sample_size"] == batches[0]["ntokens"]


def test_validation_is_the_loss_without_a_teacher(task, pair, batches, teachers):
    model = build(pair).eval()
    plain = LabelSmoothedCrossEntropyCriterion(task, sentence_avg=False, label_smoothing=0.1)
    ours = criterion(task, teachers["plain"], distill_weight=0.9)
    (loss, size, log), (expected, expected_size, expected_log) = (each(model, batches[0]) for each in (ours, plain))
    torch.testing.assert_close(loss, expected)
    assert size == expected_size and log.keys() == expected_log.keys()
    assert ours.teacher is None, "a teacher is opened where nobody learns"


def test_three_subnets_ask_the_teacher_once(task, pair, batches, teachers):
    model, ours = build(pair), criterion(task, teachers["plain"])
    evaluated = []
    ours(model.train(), batches[0])
    ours.teacher.model.register_forward_hook(lambda *_: evaluated.append(1))
    for batch in (batches[0], batches[1], batches[0]):
        task.train_step(batch, model, ours, Backward(), 3)
    assert len(evaluated) == 3


def test_the_largest_teaches_the_others(task, pair, batches):
    """It runs first and learns from the data alone; its logits are a constant for the others."""
    model, ours = build(pair), criterion(task, "largest", distill_weight=0.4)
    named = sandwich(SPACE, model.draw(3))
    model.train()
    with model.use_architecture(named["largest"]):
        loss, _, _ = LabelSmoothedCrossEntropyCriterion(task, False, 0.1)(model, batches[0])
        reference = model(**batches[0]["net_input"])[0].detach()
    expected = loss / 3
    for name in ("random", "smallest"):
        with model.use_architecture(named[name]):
            first, _ = definition(model, lambda **_: (reference,), batches[0], weight=0.4)
        expected = expected + first / 3
    expected.backward()
    wanted_gradients = gradients(model)
    total, _, log = task.train_step(batches[0], model, ours, Backward(), 3)
    torch.testing.assert_close(total, expected.detach(), rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(gradients(model), wanted_gradients, rtol=1e-3, atol=1e-4)
    assert float(log["distill_loss"]) > 0
    torch.testing.assert_close(log["subnet:largest"], loss.detach(), rtol=1e-4, atol=1e-4)
