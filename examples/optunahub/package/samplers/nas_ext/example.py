"""Search the largest network within a hard constraint."""

import optuna
import optunahub

from nas_core.space import Choice, SearchSpace

module = optunahub.load_module(package="samplers/nas_ext")
space = SearchSpace(
    "mine",
    [
        Choice.make("layers", range(1, 7)),
        Choice.make("width", range(8, 65, 8)),
        Choice.make("attention", ["softmax", "linear"]),
    ],
)


def size(architecture) -> float:
    return architecture["layers"] * architecture["width"] ** 2


def objective(trial: optuna.Trial) -> float:
    architecture = module.suggest_architecture(trial, space)
    return 1 / size(architecture) + (architecture["attention"] == "linear")


sampler = module.HATEvolutionSampler(space, {"size": (size, 8000)}, population=10)
study = optuna.create_study(sampler=sampler)
study.optimize(objective, n_trials=40)
print(study.best_trial.params, study.best_value)
