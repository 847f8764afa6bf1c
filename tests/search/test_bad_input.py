"""Bad input of searches: one line that names the value."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nas_core.cli import main
from nas_core.errors import ArchitectureError, ConfigError, ConstraintError, DataError, NasExtError
from nas_core.search import (
    Constraint,
    EvolutionConfig,
    HypervolumeSearch,
    InfeasibleError,
    MultiObjectiveConfig,
    MultiObjectiveEvolution,
    ParetoArchive,
    RandomConfig,
    RandomSearch,
    RankNASConfig,
    search,
)
from nas_core.search.calibration.files import read_trained
from nas_core.search.calibration.model import Calibration
from nas_core.search.journal import Journal, settle_config
from nas_core.search.registry import config_of
from nas_core.space import Architecture, get_space
from tests.contracts.strategy import SPACE, limit, quality
from tests.search.calibration.toy_tasks import drawn, inherited_loss, standalone
from tests.search.runs import run
from tests.search.small import in_jobs, on_devices
from tests.search.toy_host import make_visible

FEW = RandomConfig(evaluations=4)
SOME = drawn(4)


def random(limits: Any = ()) -> RandomSearch:
    return RandomSearch(SPACE, limits, FEW)


def searched_twice() -> Any:
    strategy = random()
    strategy.ask()
    return search(strategy, quality, progress=False)


def fails(architecture: Architecture) -> Any:
    raise DataError("no validation data in here")


def locked(folder: Path) -> Any:
    with Journal(folder / "journal.jsonl"):
        return run(folder)


def config(folder: Path, text: str) -> Any:
    (folder / "config.yaml").write_text(text)
    return settle_config(folder / "config.yaml", {}, {})


def journal(folder: Path) -> Any:
    (folder / "journal.jsonl").write_text("no journal\n")
    return Journal(folder / "journal.jsonl").__enter__()


def records(folder: Path, *lines: str) -> Any:
    (folder / "t.jsonl").write_text("".join(line + "\n" for line in lines))
    return read_trained([folder / "t.jsonl"], SPACE, "bleu")


def fit(values: Any = None, networks: Any = SOME) -> Any:
    inherited = inherited_loss(networks) if values is None else values
    return Calibration(SPACE, "test_bleu").fit(networks, inherited, standalone(networks))


def per_row(values: Any) -> Any:
    return Constraint("latency_ms", 1.0, lambda rows: values).values(SPACE.rows([SPACE.smallest()] * 3))


several = MultiObjectiveEvolution(SPACE, (), MultiObjectiveConfig(population=4, iterations=1))
CASES: list[tuple[Callable[[Path], Any], type[Exception], str]] = [
    (lambda _: config_of("evolution", {"population": 3, "parents": 10}), ConfigError, "3"),
    (lambda _: EvolutionConfig(population="30"), ConfigError, "'30'"),
    (lambda _: EvolutionConfig(mutation_prob=1.1), ConfigError, "1.1"),
    (lambda _: config_of("random", {"evaluations": 0}), ConfigError, "0"),
    (lambda _: config_of("hypervolume", {"evaluations": 20}, 12), ConfigError, "12, also sets evaluations"),
    (lambda _: config_of("multi-objective", {"population": 1}), ConfigError, "1"),
    (lambda _: config_of("ranknas", {"keep_genes": -1}), ConfigError, "-1"),
    (lambda _: config_of("ranknas", {"ranker": "tau"}), NasExtError, "'tau'"),
    (lambda _: RankNASConfig(mutation_prob=1.5), ConfigError, "1.5"),
    (lambda _: config_of("annealing", {}), NasExtError, "'annealing'"),
    (lambda _: MultiObjectiveEvolution(SPACE, objectives=("loss",)), ConfigError, "loss"),
    (lambda _: HypervolumeSearch(SPACE, objectives=("loss", "a", "b")), ConfigError, "at most 2"),
    (lambda _: config_of("evolution", {"population": 20}, 100), ConfigError, "population"),
    (lambda _: limit(float("nan")), ConstraintError, "nan"),
    (lambda _: per_row(np.zeros((3, 1))), ConstraintError, "(3, 1)"),
    (lambda _: random("latency_ms<=5"), ConstraintError, "'l'"),
    (lambda _: random(5), ConstraintError, "5"),
    (lambda _: random({"params_m": 5.0}), ConstraintError, "params_m"),
    (lambda _: search([], quality), ConfigError, "no strategy"),
    (lambda _: search([random(), random()], quality), ConfigError, "same limits"),
    (lambda _: searched_twice(), ConfigError, "'unlimited'"),
    (lambda _: search(several, quality, progress=False), ConfigError, "several metrics"),
    (lambda _: search(random(), None), ConfigError, "evaluate"),
    (lambda _: search(random(), None, evaluate_many=lambda some: (), batch_size=0), ConfigError, "0"),
    (lambda f: run(f, fails), DataError, "no validation data"),
    (lambda f: run(f, fails, limits=(3000.0, 10.0)), InfeasibleError, "latency_ms<=10"),
    (lambda f: locked(f), ConfigError, "searching in"),
    (lambda f: config(f, "a: ["), ConfigError, "config.yaml"),
    (lambda f: config(f, "a: 1"), ConfigError, "config.yaml"),
    (lambda f: journal(f), DataError, "line 1"),
    (lambda f: ParetoArchive(["loss", "loss"]), ConfigError, "loss"),
    (lambda f: records(f, '{"genes": {}'), DataError, "t.jsonl"),
    (lambda f: records(f, '{"metrics": {"bleu": 3}}'), DataError, "'metrics'"),
    (lambda f: records(f, json.dumps({"genes": SOME[0].to_dict(), "metrics": {"ter": 3}})), DataError, "ter"),
    (lambda f: records(f, *[json.dumps({"genes": SOME[0].to_dict(), "metrics": {"bleu": 1}})] * 2), DataError, "t.js"),
    (lambda _: fit([1, 2, np.nan, 3]), DataError, "2"),
    (lambda _: fit([1] * 4, [get_space("hat_wmt14_en_de").smallest()] * 4), ArchitectureError, "hat_small"),
    (lambda f: on_devices(f / "absent.toy", f / "run"), NasExtError, "absent.toy"),
    (lambda f: in_jobs(f / "absent.toy", f / "run"), NasExtError, "absent.toy"),
]  # fmt: skip


@pytest.mark.parametrize("case", range(len(CASES)))
def test_bad_input_is_one_line_that_names_the_value(case: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    call, error, value = CASES[case]
    if error is NasExtError and value == "absent.toy":
        pytest.importorskip("submitit", reason="needs submitit")
        make_visible(tmp_path, monkeypatch)
    with pytest.raises(error) as caught:
        call(tmp_path)
    assert value in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "value"),
    [
        (["--device", "cpu,cuda:7"], "'cuda:7'"),
        (["--device", "cpu,abacus"], "'abacus'"),
        (["--device", "cpu,cpu", "--executor", "submitit"], "each job uses one"),
        (["--precision", "fp8"], "'fp8'"),
        (["--precision", "bf16"], "'toy'"),
    ],
)
def test_bad_options_of_the_command(
    options: list[str], value: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    make_visible(tmp_path, monkeypatch)
    (tmp_path / "net.toy").write_text("{}")
    assert main(["search", "--checkpoint", str(tmp_path / "net.toy"), "--out", str(tmp_path / "run"), *options]) == 2
    errors = [line for line in capsys.readouterr().err.splitlines() if "error:" in line]
    assert len(errors) == 1 and value in errors[0]
    assert not (tmp_path / "run" / "journal.jsonl").exists()
