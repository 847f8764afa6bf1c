"""NASLib's predictor interface, driven as NASLib drives it, without NASLib."""

import copy

import numpy as np
import pytest
import torch
from scipy.stats import kendalltau

from naslib_ext import AccuracyPredictor
from naslib_ext.predictor import units_of
from tests.naslib_ext.fakes import SAMPLERS, TINY, WithSpec, driven, sampled


def targets_of(count, seed=5):
    return (80 + 10 * np.random.default_rng(seed).random(count)).tolist()


def fitted(count=12, seed=0, **changes):
    predictor = AccuracyPredictor("nasbench201", **{**TINY, **changes})
    np.random.seed(seed)
    predictor.fit(sampled("nasbench201", count), targets_of(count))
    return predictor


def test_other_accuracy_models():
    architectures = sampled("nasbench201", 40)
    accuracies = [60 + 4.0 * architecture.op_indices.count(2) for architecture in architectures]
    predictor = AccuracyPredictor(model="additive")
    np.random.seed(0)
    _, predictions = driven(predictor, "nasbench201", architectures[:30], accuracies[:30], architectures[30:])
    assert kendalltau(predictions, accuracies[30:]).statistic > 0.3
    reloaded = copy.deepcopy(predictor)
    np.testing.assert_array_equal(reloaded.query(architectures[30:]), predictions)


@pytest.mark.parametrize("space", SAMPLERS)
def test_contract_of_the_evaluator(space):
    architectures = sampled(space, 20)
    np.random.seed(0)
    row, predictions = driven(AccuracyPredictor(**TINY), space, architectures[:12], targets_of(12), architectures[12:])
    assert isinstance(predictions, np.ndarray) and predictions.dtype == np.float64 and predictions.shape == (8,)
    assert np.isfinite(predictions).all()
    assert isinstance(row["train_error"], float)
    assert (row["hp_recipe"], row["hp_epochs"], row["hp_dim"], row["hp_depth"]) == ("paper", 5, 16, 1)


def test_one_architecture_at_a_time_agrees_with_all_at_once():
    predictor, architectures = fitted(), sampled("nasbench201", 10, seed=9)
    together = predictor.query(architectures)
    single = [predictor.query([architecture]) for architecture in architectures]
    assert all(one.shape == (1,) and one.dtype == np.float64 for one in single)
    np.testing.assert_allclose(np.concatenate(single), together, rtol=1e-5)
    np.testing.assert_allclose(predictor.query(architectures[::-1]), together[::-1], rtol=1e-5)
    assert predictor.query([]).shape == (0,)


def test_members_copied_from_one_object_differ_and_are_repeated_by_seeding_numpy():
    def ensemble(seed):
        np.random.seed(seed)
        members = [copy.deepcopy(prototype) for _ in range(3)]
        for member in members:
            member.set_hyperparams(members[0].default_hyperparams.copy())
            member.fit(train, targets_of(12))
        return np.array([member.query(test) for member in members])

    prototype = AccuracyPredictor("nasbench201", **TINY)
    train, test = sampled("nasbench201", 12), sampled("nasbench201", 6, seed=1)
    first = ensemble(4)
    assert first.shape == (3, 6) and (first.std(0) > 0).all()
    np.testing.assert_array_equal(first, ensemble(4))
    assert (first != ensemble(5)).all()


def test_streams_of_the_host():
    """numpy's global stream gives one number per fit; torch's is left alone; queries take nothing."""
    torch.manual_seed(3)
    expected = torch.rand(1)
    torch.manual_seed(3)
    predictor = fitted(seed=2)
    assert torch.rand(1) == expected
    after = np.random.get_state()[1:3]
    np.random.seed(2)
    np.random.randint(2**31 - 1)
    np.testing.assert_equal(np.random.get_state()[1:3], after)
    predictor.query(sampled("nasbench201", 2))
    np.testing.assert_equal(np.random.get_state()[1:3], after)


def test_units():
    assert units_of(np.array([10.0, 91.6])) == "percent"
    assert units_of(np.array([0.1, 0.93])) == "fraction"
    assert units_of(np.array([-3.0, -2.5])) == units_of(np.array([10.0, 250.0])) == "any"
    train, test = sampled("nasbench201", 12), sampled("nasbench201", 6, seed=1)
    percent = np.array(targets_of(12))

    def predictions(accuracies):
        np.random.seed(0)
        predictor = AccuracyPredictor("nasbench201", **TINY)
        predictor.fit(train, list(accuracies))
        return predictor.query(test)

    np.testing.assert_allclose(predictions(percent), 100 * predictions(percent / 100), rtol=1e-6)
    losses = predictions(-percent / 30)  # beyond percent and fractions: relative to their mean and spread
    assert (-percent.max() / 30 - 1 < losses).all() and (losses < -percent.min() / 30 + 1).all()


def test_cells_that_do_not_exist_are_left_out_and_predicted_as_naslib_scores_them():
    apart = WithSpec({"matrix": np.zeros((7, 7), int), "ops": ["input", *["maxpool3x3"] * 5, "output"]})
    train, targets = sampled("nasbench101", 8), targets_of(8)

    def predictions(architectures, accuracies):
        np.random.seed(0)
        predictor = AccuracyPredictor("nasbench101", **TINY)
        assert predictor.fit(architectures, accuracies) < 100
        return predictor.query([train[0], apart, train[1]])

    with_it = predictions([*train, apart], [*targets, -1])
    assert with_it[1] == -1 and with_it[0] > -1 and with_it[2] > -1
    np.testing.assert_array_equal(with_it, predictions(train, targets))
