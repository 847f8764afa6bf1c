"""``nas-ext search --storage``: several commands, one search."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.searching import Search
from tests.toys import ToySupernet, plug_in

optuna = pytest.importorskip("optuna", reason="needs Optuna")
pytestmark = [
    pytest.mark.optuna,
    pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning"),
]


@pytest.fixture
def adapter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As installed, whatever the environment was installed from."""
    plug_in(tmp_path / "plugged", monkeypatch, "nas_ext.hosts", "optuna", "nas_core.adapters:OPTUNA")


def test_a_second_machine_evaluates_nothing_again_and_has_the_same_run(
    run: Search, supernet: ToySupernet, adapter: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    storage = ["--storage", str(tmp_path / "study.log"), "--study", "ours", "--limit", "params_m=1", "--no-measure"]
    assert run("--no-measure", "--limit", "params_m=1", out="alone") == 0
    alone = list(supernet.evaluated)
    supernet.evaluated.clear()
    assert run(*storage, out="first") == 0
    assert sorted(one.key for one in supernet.evaluated) == sorted(one.key for one in alone)
    supernet.evaluated.clear()
    assert run(*storage, out="second") == 0
    assert not supernet.evaluated
    for name in ("journal.jsonl", "finalists.json", "pareto.csv", "state.json"):
        files = {(tmp_path / out / name).read_bytes() for out in ("alone", "first", "second")}
        assert len(files) == 1, name
    from optuna_ext.storage import open_storage

    study = optuna.load_study(study_name="ours", storage=open_storage(str(tmp_path / "study.log")))
    assert study.metric_names == ["loss", "latency_ms", "params_m"]
    lines = [json.loads(line) for line in (tmp_path / "alone" / "journal.jsonl").read_text().splitlines()]
    recorded = {line["key"]: line["metrics"] for line in lines}
    results = {trial.user_attrs["architecture"]: trial for trial in study.trials}
    assert set(results) == set(recorded)
    for key, trial in results.items():
        assert trial.values == [recorded[key][name] for name in study.metric_names]
        assert {"flops_g", "nll_loss"} <= set(trial.user_attrs)
    (tmp_path / "checkpoint.pt").write_bytes(b"other weights")
    assert run(*storage, out="third") == 2
    assert "checkpoint_sha256" in capsys.readouterr().err
