"""Accuracy models by name in NASLib's ensembles."""

import copy

import numpy as np
import pytest

from naslib_ext import AccuracyPredictor, register
from tests.naslib_ext.fakes import sampled


@pytest.fixture
def ensemble(source_tree):
    from naslib_ext.compat import load

    return load("naslib.predictors.ensemble")[0].Ensemble


def test_members_under_the_registered_name(ensemble):
    register("nnformer", model="nn-former", epochs=7, seed=3)
    members = ensemble(num_ensemble=4, predictor_type="nnformer", ss_type="nasbench201").get_ensemble()
    assert len({id(member) for member in members}) == 4
    for member in members:
        assert member.model == "nn-former"
        assert (member.ss_type, member.seed, member.default_hyperparams["epochs"]) == ("nasbench201", 3, 7)


def test_any_accuracy_model_by_name(ensemble):
    register("sums", model="additive")
    (member,) = ensemble(num_ensemble=1, predictor_type="sums", ss_type="nasbench201").get_ensemble()
    assert (type(member), member.model, member.ss_type) == (AccuracyPredictor, "additive", "nasbench201")
    assert member.default_hyperparams == {}


def test_names_of_naslib_go_on_to_naslib(ensemble):
    register()
    assert ensemble(num_ensemble=2, predictor_type="gcn").get_ensemble() == ["a gcn", "a gcn"]
    with pytest.raises(KeyError):
        ensemble(predictor_type="neither").get_ensemble()


def test_registration_is_idempotent_and_loud(ensemble):
    original = ensemble.get_ensemble
    register("nnformer", model="nn-former", epochs=7)
    wrapped = ensemble.get_ensemble
    register("nnformer", model="nn-former", epochs=7)
    assert ensemble.get_ensemble is wrapped is not original
    register("other", model="nn-former", epochs=8)
    for name, epochs in (("nnformer", 7), ("other", 8)):
        (member,) = ensemble(num_ensemble=1, predictor_type=name).get_ensemble()
        assert member.default_hyperparams["epochs"] == epochs


def test_one_model_whose_members_show_its_standard_deviation(ensemble):
    register("sure", processes=0, trees=1)
    members = ensemble(num_ensemble=3, predictor_type="sure", ss_type="nasbench201").get_ensemble()
    architectures = sampled("nasbench201", 24)
    accuracies = [60 + 4.0 * architecture.op_indices.count(2) for architecture in architectures]
    np.random.seed(0)
    errors = [member.fit(architectures[:16], accuracies[:16]) for member in members]
    assert len(set(errors)) == 1 and errors[0] > 0
    predicted = np.array([member.query(architectures[16:]) for member in members])
    mean, std = members[0].shared.query_with_std(architectures[16:])
    np.testing.assert_allclose(predicted.mean(0), mean)
    np.testing.assert_allclose(predicted.std(0), std)
    assert (std > 0).all() and members[2].ss_type == "nasbench201"
    np.testing.assert_allclose(copy.deepcopy(members[1]).query(architectures[16:]), predicted[1])
