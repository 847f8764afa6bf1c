"""Use search strategies of nas-ext in NNI's NasExperiment: ``python examples/nni/nas_experiment.py``.

The model space is the translation space ``hat_small``. A formula replaces training and validation.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import nni_ext  # before NNI: see its docstring  # isort: skip
import nni
from nni.nas.evaluator import FunctionalEvaluator
from nni.nas.experiment import NasExperiment, NasExperimentConfig
from nni.nas.profiler import Profiler

from nas_core.models import params_m
from nas_core.space import Architecture, get_space
from nas_core.space.labels import architecture_of

STRATEGIES: dict[str, dict[str, Any]] = {
    "evolution": {"iterations": 10, "population": 20, "parents": 10},
    "ranknas": {"samples": 20, "rounds": 4, "per_round": 10},
    "multi-objective": {"iterations": 4, "population": 15},
    "random": {},
}
"""Strategy of 'nas-ext search --help' -> its options."""


def quality(architecture: Architecture) -> float:
    """Return the result of a formula that replaces training and validation."""
    widths = architecture.numbers("decoder.ffn_dim")
    deep = architecture.number("decoder.layers") + 0.2 * len(architecture.numbers("encoder.ffn_dim"))
    return deep + sum(width / 512 / (layer + 1) for layer, width in enumerate(widths))


def evaluate(model: Any) -> None:
    """Evaluate a model and report the metric to NNI; larger is better."""
    nni.report_final_result(quality(model.architecture))


class Parameters(Profiler):  # type: ignore[misc]
    """Profiler that returns the number of parameters in millions."""

    def __init__(self, model_space: Any) -> None:
        super().__init__(model_space)
        self.space = model_space.space

    def profile(self, sample: dict[str, Any]) -> float:
        return params_m(architecture_of(self.space, sample))


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--strategy", choices=STRATEGIES, default="evolution")
    parser.add_argument("--models", type=int, default=60, help="largest number of evaluated models")
    parser.add_argument("--max-params-m", type=float, default=0.8)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("runs/nas_experiment"))
    options = parser.parse_args(argv)

    model_space = nni_ext.as_model_space(get_space("hat_small"))
    limits = {"params_m": (Parameters(model_space), options.max_params_m)}
    strategy = nni_ext.SearchStrategy(
        options.strategy, constraints=limits, seed=options.seed, **STRATEGIES[options.strategy]
    )
    config = NasExperimentConfig("sequential", "simplified", "local")
    config.max_trial_number = options.models
    config.experiment_working_directory = options.out
    experiment = NasExperiment(model_space, FunctionalEvaluator(evaluate), strategy, config)
    try:
        experiment.run()
    finally:
        experiment.stop()
    best = strategy.best()
    print(f"{len(strategy.archive)} models evaluated; the best has metric {best.metric:.3f}")
    print(f"with {best.costs['params_m']:.2f} million parameters: {best.architecture.to_dict()}")
    best.architecture.save(options.out / "best.json", metric=best.metric, **best.costs)


if __name__ == "__main__":
    main()
