"""Small experiments for the tests: tiny spaces, a tiny corpus, and commands that use them."""

from __future__ import annotations

from pathlib import Path

import pytest

from examples.papers.experiment import read_experiment

GIVEN = {"DATA": "data", "TEST": "test", "LIMIT_MS": "9", "ARCH": "a.json", "PRECISION": "", "DEVICE": "cpu"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    folder = Path(__file__).parent
    for item in items:
        if folder in item.path.parents:
            for warning in (UserWarning, FutureWarning, DeprecationWarning):  # of the hosts
                item.add_marker(pytest.mark.filterwarnings(f"ignore::{warning.__name__}"))


def words(name: str, step: str, **given: object) -> list[str]:
    """The command of a step, with these values and stand-ins for the others that have no default."""
    experiment = read_experiment(name)
    values = {key: str(value) for key, value in {**GIVEN, **given}.items() if key in experiment.variables}
    return experiment.command(experiment.steps[step], experiment.values(values))
