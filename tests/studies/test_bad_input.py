"""Bad input of studies: one line that names the value."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nas_core.errors import ConfigError, DataError, NasExtError
from nas_core.files.journal import append_jsonl
from nas_core.space import Architecture
from nas_core.studies.base import ArchitecturesConfig, Study, Subject, check_same_examples, shared_space
from nas_core.studies.gap import GAP, GapConfig, agreement, read_runs
from nas_core.studies.routing import ROUTING
from tests.studies.trainers import SPACE, Trainer
from tests.toys import ToySupernet


def runs(folder: Path, record: dict[str, Any]) -> Any:
    path = folder / "runs.jsonl"
    append_jsonl(path, {"architecture": {"width": 2}, "metrics": {"loss": 1.0}, "examples": "other"})
    append_jsonl(path, record)
    return read_runs(path, SPACE)


def run(study: Study, folder: Path, config: Any, *supernets: Any) -> Any:
    subjects = []
    for place, supernet in enumerate(supernets or (ToySupernet(SPACE),)):
        (folder / f"{place}.pt").write_bytes(b"%d" % place)
        subjects.append(Subject(f"{place}", folder / f"{place}.pt", supernet))
    return study.run(subjects, config, folder / "out")


CASES: list[tuple[Callable[[Path], Any], type[NasExtError], str]] = [
    (lambda _: agreement([1.0, 2.0], [1.0, 2.0]), DataError, "2"),
    (lambda _: agreement([1.0, 2.0, math.nan], [1.0, 2.0, 3.0]), DataError, "nan"),
    (lambda _: agreement([1.0, 1.0, 1.0], [1.0, 2.0, 3.0]), DataError, "1"),
    (lambda f: runs(f, {"architecture": {"width": 2}, "metrics": {"loss": 1.0}}), DataError, "record 2"),
    (lambda f: runs(f, {"architecture": {"width": 3}, "metrics": None}), DataError, "record 2"),
    (lambda f: runs(f, {"architecture": {"width": 9}, "metrics": {"loss": 1.0}}), DataError, "record 2"),
    (lambda f: runs(f, {"loss": 1.0}), DataError, "record 2"),
    (lambda f: runs(f, {"architecture": {"width": 3}, "metrics": {"loss": math.nan}}), DataError, "nan"),
    (lambda f: GapConfig(standalone=f, train={"loss": "1"}), ConfigError, "train"),
    (lambda _: GapConfig(architectures=2), ConfigError, "2"),
    (lambda _: GapConfig(jobs=0), ConfigError, "0"),
    (lambda _: ArchitecturesConfig(random=-1), ConfigError, "-1"),
    (lambda f: run(GAP, f, GapConfig(metric="bleu"), Trainer()), DataError, "bleu"),
    (lambda f: run(GAP, f, GapConfig()), ConfigError, "train"),
    (lambda f: run(ROUTING, f, ArchitecturesConfig()), NasExtError, "weights"),
    (lambda f: run(GAP, f, GapConfig(), Trainer(), Trainer(key="other")), DataError, "1.pt"),
]


@pytest.mark.parametrize("case", range(len(CASES)))
def test_bad_input_is_one_line_that_names_the_value(case: int, tmp_path: Path) -> None:
    call, error, value = CASES[case]
    with pytest.raises(error) as caught:
        call(tmp_path)
    assert value in str(caught.value) and "\n" not in str(caught.value)


def test_supernets_of_one_study_have_one_space_and_the_same_examples(tmp_path: Path) -> None:
    subjects = [Subject(name, tmp_path / name, Trainer(key=name)) for name in ("a", "b")]
    assert shared_space(subjects) == SPACE and Architecture({"width": 1}) in SPACE
    with pytest.raises(DataError):
        check_same_examples(subjects)
