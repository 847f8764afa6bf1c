"""Optuna storages and studies shared by several processes."""

from __future__ import annotations

import logging
import os
import re
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from nas_core.differences import check_same_settings
from nas_core.errors import ConfigError
from nas_core.files.journal import repair_jsonl
from nas_core.optional import require
from nas_core.registry import first_line

T = TypeVar("T")
_log = logging.getLogger(__name__)
PATIENCE_S = 180.0
"""Seconds after which an unreachable storage is an error; shorter outages are waited for."""
ATTEMPTS, PAUSE_S = 8, 0.25
"""Attempts to open a database, and seconds before the second one."""
DISTURBED = ("IntegrityError", "OperationalError", "ProgrammingError", "StorageInternalError")
"""Errors of processes that create the tables of a database at the same time."""
SETTINGS = "nas_ext:settings"


_URL_PASSWORD = re.compile(r"(://[^:]*:).+@", re.S)
_FIELD_PASSWORD = re.compile(
    r"(odbc_connect=)[^&]+"
    r"|((?:password|passwd|passphrase|secret|token|api_?key)(?:=|%3D))[^&]+"
    r"|(pwd(?:=|%3D))(?:\{[^}]*\}|(?:(?!%3B)[^&;])+)",
    re.I,
)


class _JournalLock:
    """Lock of a journal file; acquiring it removes an incomplete last line, left by a killed process."""

    def __init__(self, path: str, lock: Any) -> None:
        self._path, self._lock = path, lock

    def acquire(self) -> bool:
        acquired = self._lock.acquire()
        try:
            repair_jsonl(self._path)
        except BaseException:
            self._lock.release()
            raise
        return bool(acquired)

    def release(self) -> None:
        self._lock.release()


def open_storage(storage: str) -> Any:
    """Open a storage: a database by its URL (``sqlite:///search.db``), or a journal file by its path.

    Raises:
        ConfigError: the storage cannot be opened.
    """
    storages = require("optuna.storages", "a shared search", "optuna")
    journal = require("optuna.storages.journal", "a shared search", "optuna")
    for attempt in range(ATTEMPTS):
        try:
            if "://" not in storage:
                path = os.path.abspath(storage)  # Optuna's lock is a link to the path, which resolves in its own folder
                lock = _JournalLock(path, journal.JournalFileSymlinkLock(path))
                return storages.JournalStorage(journal.JournalFileBackend(path, lock_obj=lock))
            _check_url(storage)
            waits = {"connect_args": {"timeout": 60}} if storage.startswith("sqlite") else {}
            return storages.get_storage(storages.RDBStorage(storage, engine_kwargs=waits))
        except ConfigError:
            raise
        except ImportError as error:
            raise ConfigError(
                f"storage {without_password(storage)} needs a database driver: {first_line(error.__cause__ or error)};"
                " install it, such as 'psycopg[binary]' for postgresql+psycopg://user@host/name"
            ) from error
        except Exception as error:  # of the database's own package
            if type(error).__name__ not in DISTURBED or attempt == ATTEMPTS - 1:
                raise ConfigError(
                    f"cannot open storage {without_password(storage)}: {without_password(first_line(error))}; give a"
                    " URL such as sqlite:///search.db or postgresql://user@host/name, or the path of a journal file"
                ) from error
            time.sleep(PAUSE_S * (attempt + 1))
    raise AssertionError("the last attempt raises")


def _check_url(storage: str) -> None:
    # An @ in the host is part of the password; messages of the database would print it.
    engine = require("sqlalchemy.engine", "a shared search", "optuna")
    try:
        has_no_password = "@" not in (engine.make_url(storage).host or "")
    except Exception:  # of SQLAlchemy; it quotes what it takes for the port
        has_no_password = False
    if not has_no_password:
        raise ConfigError(
            f"cannot open storage {without_password(storage)}: it is not a valid URL; in the user name and password"
            " write @ as %40, : as %3A, / as %2F and % as %25"
        ) from None


def open_study(storage: str, name: str, metrics: Sequence[str], settings: Mapping[str, Any]) -> Any:
    """Open or create a study that minimises ``metrics``.

    Raises:
        ConfigError: the storage cannot be opened, or the study has other objectives or ``settings``.
    """
    opened = open_storage(storage)
    optuna = require("optuna", "a shared search", "optuna")
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    sampler = optuna.samplers.RandomSampler()  # not used: architectures come from the strategy
    study = optuna.create_study(
        storage=opened, study_name=name, directions=["minimize"] * len(metrics), load_if_exists=True, sampler=sampler
    )
    names = study.metric_names
    directions = {direction.name for direction in study.directions}
    if len(study.directions) != len(metrics) or directions != {"MINIMIZE"} or (names and names != list(metrics)):
        raise ConfigError(
            f"study {name!r} has the objectives {', '.join(names or ['value'] * len(study.directions))}, but this"
            f" search minimises {', '.join(metrics)}; start all workers with the same command, or give another --study"
        )
    if names is None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            study.set_metric_names(list(metrics))
    before = study.user_attrs.get(SETTINGS)
    if before is None:
        study.set_user_attr(SETTINGS, dict(settings))
        before = study.user_attrs[SETTINGS]
    check_same_settings(
        f"study {name!r} holds results with",
        before,
        settings,
        "start all workers with the same settings, or give another --study",
    )
    return study


def is_of_storage(error: BaseException) -> bool:
    """Return True if an exception means that a database or journal file is unreachable or in use."""
    return isinstance(error, OSError) or any(
        kind.__name__ in ("SQLAlchemyError", "StorageInternalError") for kind in type(error).__mro__
    )


def patiently(call: Callable[..., T], *args: Any) -> T:
    """Call a function of a storage; repeat it for up to :data:`PATIENCE_S` seconds while the storage is unreachable."""
    until, pause = time.monotonic() + PATIENCE_S, PAUSE_S
    while True:
        try:
            return call(*args)
        except Exception as error:  # of the database's own package
            if not is_of_storage(error):
                raise
            cause = error.__cause__ if isinstance(error.__cause__, Exception) else error
            reason = without_password(first_line(cause))
            if time.monotonic() + pause > until:
                raise ConfigError(
                    f"the storage was not reachable for {PATIENCE_S:g} s: {reason}; make it available and run the same"
                    " command again: stored results are kept"
                ) from error
            _log.warning("the storage is not reachable (%s); trying again in %g s", reason, pause)
        time.sleep(pause)
        pause = min(2 * pause, 10.0)


def without_password(text: str) -> str:
    """Replace passwords by ``***``, after the user name of a URL and in fields such as ``password=``."""
    return _FIELD_PASSWORD.sub(r"\1\2\3***", _URL_PASSWORD.sub(r"\1***@", text))
