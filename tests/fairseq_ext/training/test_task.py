"""``--task supernet_translation``: ways of training and of validating."""

import pytest
import torch
from fairseq.criterions.label_smoothed_cross_entropy import LabelSmoothedCrossEntropyCriterion

from fairseq_ext.model import TranslationModel
from fairseq_ext.task import SupernetTranslationConfig, SupernetTranslationTask
from nas_core.supernet import sandwich
from nas_core.supernet.sampling import draw, validation_set
from tests.fairseq_ext.running import DECODING, SPACE, Backward, build, gradients, passed, set_up

NAMES = ["smallest", "largest", "random1", "random2"]


@pytest.fixture
def task(corpus):
    return set_up(SupernetTranslationTask, SupernetTranslationConfig, corpus, supernet_sampling="sandwich")


@pytest.fixture
def criterion(task):
    return LabelSmoothedCrossEntropyCriterion(task, sentence_avg=False, label_smoothing=0.1)


def test_sandwich_is_the_mean_of_three_steps(task, criterion, pair, batches):
    model = build(pair)
    named = sandwich(SPACE, model.draw(5))
    expected, losses = {}, {}
    for name, architecture in named.items():
        with model.train().use_architecture(architecture):
            loss, size, _ = criterion(model, batches[0])
        loss.backward()
        losses[name] = float(loss.detach())
        for key, gradient in gradients(model).items():
            expected[key] = expected.get(key, 0) + gradient / 3
    total, got_size, log = task.train_step(batches[0], model, criterion, Backward(), 5)
    torch.testing.assert_close(gradients(model), expected, rtol=1e-4, atol=1e-5)
    assert got_size == size == log["sample_size"] == log["ntokens"]
    assert float(total) == pytest.approx(sum(losses.values()) / 3) == float(log["loss"])
    assert {name: float(log[f"subnet:{name}"]) for name in named} == pytest.approx(losses)


def test_spos_equals_fairseqs_own_step(task, criterion, pair, batches):
    model = build(pair)
    task.cfg.supernet_sampling = "spos"
    first = task.train_step(batches[0], model, criterion, Backward(), 5)
    expected = gradients(model)
    second = pair.train_step(batches[0], model, criterion, Backward(), 5)
    torch.testing.assert_close(gradients(model), expected)
    assert float(first[0]) == float(second[0]) and model.train_architecture == draw(SPACE, 5)


@pytest.fixture
def selected(monkeypatch):
    """The architectures whose weights were mixed, in order."""
    results = []
    select = TranslationModel.select

    def noted(model, architecture):
        results.append(architecture)
        return select(model, architecture)

    monkeypatch.setattr(TranslationModel, "select", noted)
    return results


def losses(log):
    return {name: float(value) for name, value in log.items() if name.startswith("subnet:")}


def test_experts_are_mixed_once_for_a_validation_and_again_when_weights_change(
    task, criterion, pair, batches, selected
):
    model = build(pair)
    named = validation_set(SPACE, 2)

    def expected(batch):
        values = {}
        for name, architecture in named.items():
            with torch.no_grad(), model.eval().use_architecture(architecture):
                values[f"subnet:{name}"] = float(criterion(model, batch)[0])
        selected.clear()
        return values

    reference = [expected(batch) for batch in batches]
    task.begin_valid_epoch(1, model)
    assert [losses(task.valid_step(batch, model, criterion)[2]) for batch in batches] == reference
    assert selected == list(named.values())
    task.train_step(batches[0], model, criterion, Backward(), 5)
    model.net.output.weight.data.mul_(2)
    assert losses(task.valid_step(batches[0], model, criterion)[2]) == expected(batches[0]) != reference[0]


def test_the_best_checkpoint_is_that_of_the_named_subnet(arguments, tmp_path):
    done = passed(
        "train", *arguments, "--task", "supernet_translation", "--select-checkpoint", "smallest", "--batch-size", 64,
        "--lr", 0.1, "--max-epoch", 3, "--save-dir", tmp_path,
    )  # fmt: skip
    rounds = done.stats("valid")
    for values in rounds:
        assert values["valid_loss"] == pytest.approx(values["valid_smallest_loss"], abs=2e-3)
        assert len({values[f"valid_{name}_loss"] for name in NAMES}) > 2
    best = torch.load(tmp_path / "checkpoint_best.pt", weights_only=True)
    assert best["extra_state"]["val_loss"] == min(values["valid_loss"] for values in rounds)


def test_sandwich_by_command(arguments, tmp_path):
    common = [*arguments, "--task", "supernet_translation", "--sampling", "sandwich", "--dropout", 0.1]
    full = passed("train", *common, "--max-update", 4, "--update-freq", 2, "--save-dir", tmp_path / "whole")
    expected = [list(sandwich(SPACE, draw(SPACE, update)).values()) for update in (0, 0, 1, 1, 2, 2, 3, 3)]
    assert full.drawn == [architecture for step in expected for architecture in step]
    for stop in (2, 4):
        passed("train", *common, "--max-update", stop, "--update-freq", 2, "--save-dir", tmp_path / "parts")
    states = [torch.load(tmp_path / name / "checkpoint_last.pt", weights_only=True) for name in ("whole", "parts")]
    torch.testing.assert_close(states[0]["model"], states[1]["model"], rtol=0, atol=0)
    assert states[0]["cfg"]["task"]["supernet_sampling"] == "sandwich"
    assert states[0]["cfg"]["generation"]["sampling"] is False


def test_the_extremes_of_hats_code(arguments, tmp_path):
    options = ["--task", "supernet_translation", "--sampling", "sandwich", "--extremes", "hat", "--valid-random", 0]
    done = passed("train", *arguments, *options, "--max-update", 1, "--save-dir", tmp_path)
    assert done.drawn == list(sandwich(SPACE, draw(SPACE, 0), "hat").values())
    assert done.drawn[1:] != [SPACE.largest(), SPACE.smallest()]


def test_one_architecture_is_validated_once(arguments, architecture_file, tmp_path):
    options = ["--task", "supernet_translation", "--sampling", "sandwich", "--subnet", architecture_file]
    done = passed("train", *arguments, *options, "--max-update", 2, "--save-dir", tmp_path)
    assert len(done.drawn) == 2 and len(set(done.drawn)) == 1
    (values,) = done.stats("valid")
    assert values["valid_loss"] == values["valid_largest_loss"] and "valid_smallest_loss" not in values


def test_generations_own_sampling_option_still_works(trained, corpus):
    common = [corpus, "--path", trained("neuron"), *DECODING, "--task", "supernet_translation"]
    options = ["--beam", 1, "--nbest", 1, "--sampling"]
    drawn = [passed("generate", *common, *options, "--seed", seed).hypotheses() for seed in (1, 2)]
    assert len(drawn[0]) == 20 and drawn[0] != drawn[1]
