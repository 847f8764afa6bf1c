import pytest

from nas_core.errors import ConfigError, UnknownChoiceError
from nas_core.latency.by_genes import GeneLatencyModel, LinearModel, list_models, model_class, register_model
from nas_core.space import get_space


def test_models_by_name():
    assert {"linear", "mlp"} <= set(list_models())
    assert model_class("linear") is LinearModel
    with pytest.raises(UnknownChoiceError, match="linear, mlp"):
        model_class("linera")
    with pytest.raises(UnknownChoiceError, match="rows, summary"):
        LinearModel(get_space("hat_small"), "columns")


def test_registration_is_idempotent_and_loud():
    register_model(LinearModel)

    class Impostor(GeneLatencyModel):
        kind = "linear"

    with pytest.raises(ConfigError, match=r"already registered by nas_core\.latency\.linear"):
        register_model(Impostor)
    assert model_class("linear") is LinearModel


def test_asking_before_fitting():
    with pytest.raises(ConfigError, match="not fitted"):
        LinearModel(get_space("hat_small")).predict(get_space("hat_small").largest())
