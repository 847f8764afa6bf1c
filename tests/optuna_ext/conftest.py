"""Without Optuna nothing here is collected; with it, its messages and its remarks on experimental parts stay quiet."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

collect_ignore_glob = [] if importlib.util.find_spec("optuna") else ["test_*.py"]
"""Needs Optuna: pip install 'nas-ext[optuna]'."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    folder = Path(__file__).parent
    for item in items:
        if folder in item.path.parents:
            item.add_marker(pytest.mark.optuna)
            item.add_marker(pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning"))


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    import optuna

    monkeypatch.setattr(optuna.logging.get_logger("optuna"), "level", optuna.logging.ERROR)
