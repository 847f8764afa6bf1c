"""Storages that cannot be opened."""

from __future__ import annotations

import pytest

from nas_core.errors import ConfigError
from optuna_ext.storage import open_storage


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
