"""Which settings a run folder belongs to, and whether those of today continue it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from nas_core.errors import CheckpointError, ConfigError
from timm_ext.options import TrainConfig

KEPT = "kept"
"""The folder in a run folder for networks of ``--keep-every``."""
_FREE = (
    "device",
    "workers",
    "output",
    "channels_last",
    "torchcompile",
    "pin_mem",
    "no_prefetcher",
    "persistent_workers",
    "log_interval",
    "keep_every",
)
"""Settings that may differ when a run is continued; other ``workers`` and loaders augment by other draws."""


def check_continues(folder: Path, state: Mapping[str, Any], config: TrainConfig, count: int) -> None:
    """Raise unless a checkpoint of this run folder was written with these settings and as many workers.

    Raises:
        ConfigError: another setting, or number of workers. CheckpointError: some other program wrote it.
    """
    now, then = asdict(config), state.get("train")
    if not isinstance(then, dict):
        raise CheckpointError(f"{folder / 'last.pt'} was not written by timm_ext.train; give another --output")
    for name, value in now.items():
        if name not in _FREE and then.get(name) != value:
            raise ConfigError(
                f"{folder} holds a run with --{name.replace('_', '-')} {then.get(name)!r}, now {value!r};"
                " give another --output, or the same settings to continue it"
            )
    if (former := state["worker_count"]) != count:
        raise ConfigError(
            f"{folder} holds a run of {former} workers, now {count}; start as many with torchrun, or give another"
            " --output"
        )
