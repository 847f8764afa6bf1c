"""``--task supernet_translation``: ways of training and of validating."""

from argparse import Namespace

import pytest
import torch
from fairseq import checkpoint_utils
from fairseq.criterions.label_smoothed_cross_entropy import LabelSmoothedCrossEntropyCriterion

from fairseq_ext.model import TranslationModel
from fairseq_ext.task import SupernetTranslationConfig, SupernetTranslationTask
from nas_core.supernet import sandwich
from nas_core.supernet.sampling import draw, validation_set
from tests.fairseq_ext.running import DECODING, SPACE, Backward, build, gradients, passed, run, set_up

NAMES = ["smallest", "largest", "random1", "random2"]


@pytest.fixture
def task(corpus):
    return set_up(SupernetTranslationTask, SupernetTranslationConfig, corpus, supernet_sampling="sandwich")


@pytest.fixture
def criterion(task):
    return LabelSmoothedCrossEntropyCriterion(task, sentence_avg=False, label_smoothing=0.1)


@pytest.mark.parametrize("mos", ["none", "neuron"])
def test_sandwich_is_the_mean_of_three_steps(task, criterion, pair, batches, mos):
    model = build(pair, mos=mos)
    named = sandwich(SPACE, model.draw(5))
    expected, losses = {}, {}
    for name, architecture in named.items():
        with model.train().using(architecture):
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


def test_sandwich_accumulates_over_micro_batches(task, criterion, pair, batches):
    model = build(pair)
    separate = {}
    for batch in batches:
        task.train_step(batch, model, criterion, Backward(), 5)
        for key, gradient in gradients(model).items():
            separate[key] = separate.get(key, 0) + gradient
    for batch in batches:
        task.train_step(batch, model, criterion, Backward(), 5)
    torch.testing.assert_close(gradients(model), separate, rtol=1e-4, atol=1e-5)
    assert model.train_architecture == draw(SPACE, 5)


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
    found = []
    select = TranslationModel.select

    def noted(model, architecture):
        found.append(architecture)
        return select(model, architecture)

    monkeypatch.setattr(TranslationModel, "select", noted)
    return found


def losses(log):
    return {name: float(value) for name, value in log.items() if name.startswith(("subnet:", "ranked:"))}


@pytest.mark.parametrize("mos", ["none", "neuron"])
def test_experts_are_mixed_once_for_all_batches_of_a_validation(task, criterion, pair, batches, selected, mos):
    model = build(pair, mos=mos, mos_router_dropout=0.5)
    expected = []
    for batch in batches:
        each = {}
        for name, architecture in validation_set(SPACE, 2).items():
            with torch.no_grad(), model.eval().using(architecture):
                each[f"subnet:{name}"] = float(criterion(model, batch)[0])
        expected.append(each)
    selected.clear()
    task.begin_valid_epoch(1, model)
    assert [losses(task.valid_step(batch, model, criterion)[2]) for batch in batches] == expected
    assert selected == list(validation_set(SPACE, 2).values())
    task.begin_valid_epoch(2, model)
    task.valid_step(batches[0], model, criterion)
    assert len(selected) == 8


@pytest.mark.parametrize("between", ["train", "begin"])
def test_weights_that_changed_are_validated_as_they_are(task, criterion, pair, batches, between):
    model = build(pair)
    before = losses(task.valid_step(batches[0], model, criterion)[2])
    if between == "train":
        task.train_step(batches[0], model, criterion, Backward(), 5)
    else:
        task.begin_valid_epoch(2, model)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(1.5)
    after = losses(task.valid_step(batches[0], model, criterion)[2])
    task.begin_valid_epoch(3, model)
    assert after == losses(task.valid_step(batches[0], model, criterion)[2])
    assert all(after[name] != before[name] for name in before)


@pytest.mark.parametrize("mos", ["none", "neuron"])
def test_mixed_weights_take_no_more_memory_than_the_supernet(corpus, pair, batches, criterion, selected, mos):
    many = set_up(SupernetTranslationTask, SupernetTranslationConfig, corpus, valid_random=40)
    model = build(pair, mos=mos)
    first = losses(many.valid_step(batches[0], model, criterion)[2])
    validated = list(many.validated(model).values())
    assert selected == validated and len(validated) == len(first) == 42
    selected.clear()
    assert losses(many.valid_step(batches[0], model, criterion)[2]) == first
    if mos == "none":
        assert selected == []  # slices are no memory of their own
    else:
        assert 0 < len(selected) < len(validated) and selected == validated[-len(selected) :]


@pytest.mark.parametrize("select", ["mean", "smallest"])
def test_what_selects_the_best_checkpoint(arguments, tmp_path, select):
    done = passed(
        "train", *arguments, "--task", "supernet_translation", "--select-checkpoint", select, "--sampling", "spos",
        "--batch-size", 64, "--lr", 0.1, "--max-epoch", 3, "--save-dir", tmp_path,
    )  # fmt: skip
    rounds = done.stats("valid")
    for values in rounds:
        subnets = [values[f"valid_{name}_loss"] for name in NAMES]
        expected = sum(subnets) / 4 if select == "mean" else values[f"valid_{select}_loss"]
        assert values["valid_loss"] == pytest.approx(expected, abs=2e-3) and len(set(subnets)) > 2
    best = torch.load(tmp_path / "checkpoint_best.pt", weights_only=True)
    last_of_the_best = max(rounds, key=lambda values: (-values["valid_loss"], values["valid_num_updates"]))
    assert best["optimizer_history"][-1]["num_updates"] == last_of_the_best["valid_num_updates"]
    assert best["extra_state"]["val_loss"] == last_of_the_best["valid_loss"]


def test_sandwich_by_command(arguments, tmp_path):
    common = [*arguments, "--task", "supernet_translation", "--sampling", "sandwich", "--dropout", 0.1]
    whole = passed("train", *common, "--max-update", 4, "--update-freq", 2, "--save-dir", tmp_path / "whole")
    expected = [list(sandwich(SPACE, draw(SPACE, update)).values()) for update in (0, 0, 1, 1, 2, 2, 3, 3)]
    assert whole.drawn == [architecture for step in expected for architecture in step]
    logged = whole.stats("train_inner")
    assert len(logged) == 4
    for values in logged:
        each = [values[f"{name}_loss"] for name in ("random", "largest", "smallest")]
        assert values["loss"] == pytest.approx(sum(each) / 3, abs=2e-3)
    for stop in (2, 4):
        passed("train", *common, "--max-update", stop, "--update-freq", 2, "--save-dir", tmp_path / "parts")
    states = [torch.load(tmp_path / name / "checkpoint_last.pt", weights_only=True) for name in ("whole", "parts")]
    torch.testing.assert_close(states[0]["model"], states[1]["model"], rtol=0, atol=0)
    assert states[0]["cfg"]["task"]["supernet_sampling"] == "sandwich"
    assert states[0]["cfg"]["generation"]["sampling"] is False


def test_sandwich_and_validation_with_the_extremes_of_hats_code(arguments, tmp_path):
    options = ["--task", "supernet_translation", "--sampling", "sandwich", "--extremes", "hat", "--valid-random", 0]
    done = passed("train", *arguments, *options, "--max-update", 1, "--save-dir", tmp_path)
    assert done.drawn == list(sandwich(SPACE, draw(SPACE, 0), "hat").values())
    assert done.drawn[1:] != [SPACE.largest(), SPACE.smallest()]
    assert "sandwich: mean loss of a random subnet, the largest and the smallest (as in HAT's code)" in done.out
    (values,) = done.stats("valid")
    model, _ = checkpoint_utils.load_model_ensemble([str(tmp_path / "checkpoint_last.pt")])
    task = Namespace(cfg=Namespace(valid_random=0))
    found = SupernetTranslationTask.validated(task, model[0])
    assert found == validation_set(SPACE, 0, extremes="hat") != validation_set(SPACE, 0)
    assert {"valid_smallest_loss", "valid_largest_loss"} <= values.keys()


def test_one_architecture_is_validated_once(arguments, architecture_file, tmp_path):
    options = ["--task", "supernet_translation", "--sampling", "sandwich", "--subnet", architecture_file]
    done = passed("train", *arguments, *options, "--max-update", 2, "--save-dir", tmp_path)
    assert len(done.drawn) == 2 and len(set(done.drawn)) == 1
    (values,) = done.stats("valid")
    assert values["valid_loss"] == values["valid_largest_loss"] and "valid_smallest_loss" not in values


def test_generations_own_sampling_option_still_works(trained, corpus):
    common = [corpus, "--path", trained("layer"), *DECODING, "--task", "supernet_translation"]
    beam = [run("generate", *common, "--beam", 2, "--seed", seed) for seed in (1, 2)]
    drawn = [run("generate", *common, "--beam", 1, "--nbest", 1, "--sampling", "--seed", seed) for seed in (1, 2)]
    assert all(done.code == 0 and len(done.hypotheses()) == 20 for done in beam + drawn), beam[0].err + drawn[0].err
    assert beam[0].hypotheses() == beam[1].hypotheses()
    assert drawn[0].hypotheses() != drawn[1].hypotheses()
