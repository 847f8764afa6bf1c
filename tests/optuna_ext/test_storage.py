"""Storages that cannot be opened, or hold what no search has written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nas_core.errors import ConfigError
from optuna_ext.history import CLAIM, OPENED, History
from optuna_ext.storage import SETTINGS, open_storage, open_study, patiently
from tests.optuna_ext.study import SPACE


@pytest.mark.parametrize("who", ["user:secret", ":secret", "user:hidden@secret"])
def test_a_message_tells_no_password(who: str) -> None:
    with pytest.raises(ConfigError, match=r"cannot open storage nosuch://(user)?:\*\*\*@host/name") as caught:
        open_storage(f"nosuch://{who}@host/name")
    assert "secret" not in str(caught.value)


def test_a_database_without_its_driver_says_which_it_is() -> None:
    missing = "storage mssql\\+pyodbc://user:\\*\\*\\*@host/name needs a driver: No module named 'pyodbc'; install it"
    with pytest.raises(ConfigError, match=missing) as caught:
        open_storage("mssql+pyodbc://user:secret@host/name")
    assert "\n" not in str(caught.value) and "secret" not in str(caught.value)


def test_settings_that_no_search_has_written_are_one_line(tmp_path: Path) -> None:
    arguments = (f"sqlite:///{tmp_path}/search.db", "study", ["loss"], {"seed": 1})
    open_study(*arguments).set_user_attr(SETTINGS, "text")
    with pytest.raises(ConfigError, match="holds what no search has written"):
        patiently(open_study, *arguments)


@pytest.mark.parametrize(
    "attribute", [{OPENED: "text"}, {OPENED: {"x": []}}, {OPENED: {"1": 2}}, {CLAIM: ["x"]}, {CLAIM: [10**9] * 3}]
)
def test_trials_that_no_search_has_written_are_one_line(attribute: dict[str, Any], tmp_path: Path) -> None:
    optuna = pytest.importorskip("optuna")
    study = open_study(f"sqlite:///{tmp_path}/search.db", "study", ["loss"], {"seed": 1})
    study.add_trial(optuna.create_trial(state=optuna.trial.TrialState.RUNNING, system_attrs=attribute))
    with pytest.raises(ConfigError, match="holds what no search has written"):
        patiently(lambda: History(SPACE).read(study.get_trials(), ["loss"], [1]))
