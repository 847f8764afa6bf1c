"""A study in a database and one in a journal file, by our samplers."""

import optuna
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend

from nas_core.models import kind_of
from nas_core.space import get_space
from optuna_ext import HATEvolutionSampler, RankNASSampler, architecture_of, suggest_architecture

space = get_space("hat_small")
kind = kind_of(space)


def objective(trial):
    return kind.flops_g(suggest_architecture(trial, space))


limits = {"params_m": (kind.params_m, 4.0)}
for sampler, storage in (
    (HATEvolutionSampler(space, limits, population=4), "sqlite:///study.db"),
    (RankNASSampler(space, limits, samples=4), JournalStorage(JournalFileBackend("study.log"))),
):
    study = optuna.create_study(storage=storage, sampler=sampler)
    study.optimize(objective, n_trials=8)
    assert kind.params_m(architecture_of(study.best_trial, space)) <= 4.0
