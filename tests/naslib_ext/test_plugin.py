"""NN-Former by name in NASLib's ensembles."""

import sys

import pytest

from nas_core.errors import ConfigError, MissingHostError, UnknownChoiceError
from naslib_ext import AccuracyPredictor, NNFormerPredictor, register, unregister


@pytest.fixture
def ensemble(source_tree):
    from naslib_ext.compat import load

    return load("naslib.predictors.ensemble")[0].Ensemble


def test_members_under_the_registered_name(ensemble):
    register("nnformer", epochs=7, seed=3)
    members = ensemble(num_ensemble=4, predictor_type="nnformer", ss_type="nasbench201").get_ensemble()
    assert len({id(member) for member in members}) == 4
    for member in members:
        assert isinstance(member, NNFormerPredictor)
        assert (member.ss_type, member.seed, member.default_hyperparams["epochs"]) == ("nasbench201", 3, 7)


def test_any_accuracy_model_by_name(ensemble):
    register("trees", model="boosted-trees", trees=2)
    members = ensemble(num_ensemble=2, predictor_type="trees", ss_type="nasbench201").get_ensemble()
    assert [(type(m), m.model, m.ss_type) for m in members] == [(AccuracyPredictor, "boosted-trees", "nasbench201")] * 2
    assert members[0].default_hyperparams == {"trees": 2, "targets": "normal"}
    with pytest.raises(ConfigError, match="'boosted-trees' has no setting epochs; it has: trees, targets"):
        register("more", model="boosted-trees", epochs=3)
    with pytest.raises(UnknownChoiceError, match="Did you mean 'boosted-trees'"):
        register("more", model="boosted-tree")


def test_names_of_naslib_go_on_to_naslib(ensemble):
    register()
    assert ensemble(num_ensemble=2, predictor_type="gcn").get_ensemble() == ["a gcn", "a gcn"]
    with pytest.raises(KeyError):
        ensemble(predictor_type="neither").get_ensemble()


def test_registration_is_idempotent_and_loud(ensemble):
    own = ensemble.get_ensemble
    register("nnformer", epochs=7)
    wrapped = ensemble.get_ensemble
    register("nnformer", epochs=7)
    assert ensemble.get_ensemble is wrapped is not own
    with pytest.raises(ConfigError, match=r"'nnformer' is registered with epochs=7.*epochs=8"):
        register("nnformer", epochs=8)
    register("other", epochs=8)
    for name, epochs in (("nnformer", 7), ("other", 8)):
        (member,) = ensemble(num_ensemble=1, predictor_type=name).get_ensemble()
        assert member.default_hyperparams["epochs"] == epochs
    unregister("nnformer")
    unregister("nnformer")
    register("nnformer", epochs=8)


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("semi_nnformer", {}, "semi"),
        ("gcn", {}, "NASLib's own"),
        ("nnformer", {"epoch": 3}, "no setting epoch"),
    ],
)
def test_wrong_registrations(ensemble, name, settings, message):
    with pytest.raises(ConfigError, match=message):
        register(name, **settings)
    with pytest.raises(KeyError):
        ensemble(predictor_type="nnformer").get_ensemble()


def test_without_naslib(monkeypatch):
    monkeypatch.setitem(sys.modules, "naslib", None)
    with pytest.raises(MissingHostError, match="NASLib was not found"):
        register()
