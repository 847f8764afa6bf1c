"""A small space, its quality, and storages of studies, for tests of the adapter for Optuna."""

from __future__ import annotations

import os
import uuid
from pathlib import Path

import numpy as np
import optuna
import pytest
import sqlalchemy

from nas_core.search import Constraint
from nas_core.space import Architecture, Choice, SearchSpace
from tests.toys import ToySupernet

__all__ = ["EVERY", "NAME", "SMALL", "SPACE", "limit", "quality", "size", "storage_at", "study_in", "supernet"]

SPACE = SearchSpace(
    "small",
    [
        Choice.make("layers", [1, 2, 3]),
        Choice.make("width", [8, 16, 32], "layers", 3),
        Choice.make("attention", ["softmax", "linear"]),
    ],
)
"""(3 + 9 + 27) x 2 = 78 architectures."""
NAME = "search"
EVERY = SPACE.architectures(np.unique(SPACE.sample_rows(np.random.default_rng(0), 10), axis=0))
SMALL = {"population": 8, "parents": 4}


def size(architecture: Architecture) -> float:
    return float(sum(architecture.numbers("width")))


def quality(architecture: Architecture) -> float:
    """Larger networks are better, up to noise that the architecture decides."""
    return 10.0 - size(architecture) / 8 + int(architecture.key, 16) % 1000 / 1000


def limit(most: float = 60.0) -> dict[str, tuple[object, float]]:
    return {"size": (size, most)}


def constraint(most: float = 60.0) -> Constraint:
    return Constraint.per_architecture("size", most, SPACE, size)


def supernet(**further: float) -> ToySupernet:
    return ToySupernet(
        SPACE, lambda architecture: {"loss": quality(architecture), "size": size(architecture), **further}
    )


def storage_at(folder: Path, kind: str) -> str:
    """``sqlite``, ``journal``, or ``postgresql``: a new schema of the database that ``NAS_EXT_POSTGRES`` names."""
    if kind != "postgresql":
        return f"sqlite:///{folder}/study.db" if kind == "sqlite" else str(folder / "study.log")
    if not (url := os.environ.get("NAS_EXT_POSTGRES")):
        pytest.skip("NAS_EXT_POSTGRES names no database of PostgreSQL")
    schema = f"nas_ext_{uuid.uuid4().hex}"
    with sqlalchemy.create_engine(url).begin() as connection:
        connection.execute(sqlalchemy.text(f"CREATE SCHEMA {schema}"))
    return f"{url}?options=-csearch_path%3D{schema}"


def study_in(storage: str, sampler: optuna.samplers.BaseSampler | None = None) -> optuna.Study:
    opened: optuna.storages.BaseStorage
    if "://" in storage:
        opened = optuna.storages.RDBStorage(storage, heartbeat_interval=1, grace_period=5)
    else:
        opened = optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend(storage))
    return optuna.create_study(storage=opened, study_name=NAME, sampler=sampler, load_if_exists=True)
