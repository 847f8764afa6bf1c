"""Storages that cannot be opened, or hold what no search has written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nas_core.errors import ConfigError
from nas_core.space import Architecture
from optuna_ext.storage import open_storage, without_password
from optuna_ext.worker import SharedEvaluations
from tests.optuna_ext.study import EVERY, NAME, SPACE, quality


@pytest.mark.parametrize(
    "who", ["user:secret", ":secret", "user:hidden@secret", "user:a secret", "user:hi@dden:secret"]
)
def test_a_message_tells_no_password(who: str) -> None:
    with pytest.raises(ConfigError, match=r"cannot open storage nosuch://(user)?:\*\*\*@host/name") as caught:
        open_storage(f"nosuch://{who}@host/name")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("postgresql://user:secret@host:5432/name", "postgresql://user:***@host:5432/name"),
        ("postgresql://user:a secret, with @@ in it@host/name", "postgresql://user:***@host/name"),
        ("postgresql://user@corp:secret@host/name", "postgresql://user@corp:***@host/name"),
        ("postgresql://host/name?user=me&password=secret", "postgresql://host/name?user=me&password=***"),
        ("postgresql://host/name?password=a secret&sslmode=no", "postgresql://host/name?password=***&sslmode=no"),
        ("mysql://user:secret@host/name?ssl_passphrase=secret", "mysql://user:***@host/name?ssl_passphrase=***"),
        ("mssql+pyodbc:///?odbc_connect=DRIVER%3Dx%3BPWD%3Dsecret%3B&a=b", "mssql+pyodbc:///?odbc_connect=***&a=b"),
        ("mssql+pyodbc:///?odbc_connect=DRIVER={x};PWD={a;secret}", "mssql+pyodbc:///?odbc_connect=***"),
        ("mssql+pyodbc://host/name?Pwd=secret;Trusted=no", "mssql+pyodbc://host/name?Pwd=***;Trusted=no"),
        ("login failed: UID%3Dsa%3BPWD%3Dsecret%3BAPP%3Dx", "login failed: UID%3Dsa%3BPWD%3D***%3BAPP%3Dx"),
        ("postgresql://us er:secret@host/name", "postgresql://us er:***@host/name"),
        ("postgresql://DOMAIN/user:secret@host/name", "postgresql://DOMAIN/user:***@host/name"),
        ("postgresql://user:two\nlines@host/name", "postgresql://user:***@host/name"),
        ("postgresql://host/name?password=a;secret", "postgresql://host/name?password=***"),
        ("login failed: UID=sa;PWD={a;secret};APP=x", "login failed: UID=sa;PWD=***;APP=x"),
        ("sqlite:///search.db", "sqlite:///search.db"),
        ("postgresql://user@host:5432/name", "postgresql://user@host:5432/name"),
        ('password authentication failed for user "me"', 'password authentication failed for user "me"'),
    ],
)
def test_passwords_are_hidden_wherever_a_url_has_them(text: str, shown: str) -> None:
    assert without_password(text) == shown


def shared(path: Path) -> SharedEvaluations:
    def evaluate(architecture: Architecture) -> dict[str, float]:
        return {"loss": quality(architecture)}

    return SharedEvaluations(str(path), NAME, SPACE, evaluate, ["loss"], {}, stale_s=0.5, poll_s=0.02)


def test_a_journal_whose_last_line_is_half_written_goes_on(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Also where its writer is killed while others are at work."""
    full, torn = tmp_path / "whole.log", tmp_path / "torn.log"
    assert len(list(shared(full)(EVERY[:3]))) == 3
    content = full.read_bytes()
    for length in (1, 30, 100):
        torn.write_bytes(content[:-length])
        worker = shared(torn)
        with torn.open("ab") as file:
            file.write(b'{"op_code": 8, "work')
        caplog.clear()
        assert len(list(worker(EVERY[:4]))) == 4
        assert "torn.log: removed the last line, which was incomplete" in caplog.text
        assert len(list(shared(torn)(EVERY[:4]))) == 4
        assert all(json.loads(line) for line in torn.read_text().splitlines())


def test_the_lock_of_a_journal_in_a_folder_is_one_that_others_can_look_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lock that a killed worker left is removed after a while, which takes its modification time."""
    journal = pytest.importorskip("optuna").storages.journal
    (tmp_path / "runs").mkdir()
    monkeypatch.chdir(tmp_path)
    open_storage("runs/search.log")
    (tmp_path / "runs" / "search.log").touch()
    recorded: list[bool] = []
    acquire = journal.JournalFileSymlinkLock.acquire

    def acquired(self: Any) -> bool:
        result = acquire(self)
        recorded.append((tmp_path / "runs" / "search.log.lock").exists())  # follows the link
        return bool(result)

    monkeypatch.setattr(journal.JournalFileSymlinkLock, "acquire", acquired)
    open_storage("runs/search.log").create_new_study([], "name")
    assert recorded and all(recorded)
