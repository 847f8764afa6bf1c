"""Storages that cannot be opened."""

from __future__ import annotations

import pytest

from nas_core.errors import ConfigError
from optuna_ext.storage import open_storage


@pytest.mark.parametrize("who", ["user:secret", ":secret"])
def test_a_message_tells_no_password(who: str) -> None:
    with pytest.raises(ConfigError, match=r"cannot open storage nosuch://(user)?:\*\*\*@host/name") as caught:
        open_storage(f"nosuch://{who}@host/name")
    assert "secret" not in str(caught.value)
