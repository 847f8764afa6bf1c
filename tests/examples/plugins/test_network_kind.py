"""A kind of network of another distribution: found by its entry point, and used as the project's own are."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from torch import nn

from nas_core.cli import main
from nas_core.models import NETWORK_KINDS, kind_of
from nas_core.predictor.readers import reader_of_kind
from nas_core.space import Architecture, Choice, SearchSpace, save_space
from nas_core.supernet import Supernet
from tests.contracts.network_kind import NetworkKindContract
from tests.toys import plug_in

SPACE = SearchSpace(
    "toy_lm", [Choice.make("rnn.layers", [1, 2, 3]), Choice.make("rnn.width", [8, 16, 24], "rnn.layers", 3)]
)


@pytest.fixture(autouse=True)
def plugged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plug_in(tmp_path / "site", monkeypatch, NETWORK_KINDS.group, "rnn_lm", "examples.plugins.network_kind:KIND")


class TestLanguageModels(NetworkKindContract):
    name = "rnn_lm"

    def space(self) -> SearchSpace:
        return SPACE

    def counted(self, network: nn.Module) -> int:
        return sum(parameter.numel() for name, parameter in network.named_parameters() if name.startswith("rnn"))


def test_it_is_one_of_the_kinds() -> None:
    assert NETWORK_KINDS.names()[-1] == "rnn_lm" and kind_of(SPACE) is NETWORK_KINDS.get("rnn_lm")
    assert reader_of_kind(kind_of(SPACE)).operations == ("embedding", "rnn", "output")


class ToySupernet(Supernet):
    """Wider is better."""

    space, task = SPACE, {"kind": "rnn_lm", "vocab": 30}

    def evaluate(self, architecture: Architecture, report: object = None) -> dict[str, float]:
        return {"loss": 5.0 - sum(architecture.numbers("rnn.width")) / 100}


def test_measured_fitted_searched_and_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(*arguments: object) -> str:
        assert main([str(part) for part in arguments]) == 0, capsys.readouterr().err
        return capsys.readouterr().out

    save_space(SPACE, tmp_path / "lm.yml")
    assert "parameters of the layers: 0.00 to 0.00 M" in run("lab", "space", "show", tmp_path / "lm.yml")
    rows, model, out = tmp_path / "lm.jsonl", tmp_path / "lm.json", tmp_path / "run"
    collect = ("latency", "collect", "--space", tmp_path / "lm.yml", "--out", rows, "--repeats", 2)
    run(*collect, "--samples", 24, "--workload", "words=5", "--workload", "vocab=30")
    settings = json.loads(rows.read_text().splitlines()[0])["settings"]
    assert settings["workload"] == {"kind": "rnn_lm", "words": 5, "vocab": 30}
    run("latency", "fit", "--data", rows, "--out", model)
    SPACE.largest().save(tmp_path / "a.json")
    assert "  network" in run("latency", "check", "--model", model, "--architecture", tmp_path / "a.json")

    monkeypatch.setattr("nas_core.supernet.host.open_supernet", lambda path, **options: ToySupernet())
    (tmp_path / "checkpoint").write_bytes(b"weights")
    slowest = max(json.loads(line).get("latency_ms", 0) for line in rows.read_text().splitlines())
    search = (
        "search",
        "--checkpoint",
        tmp_path / "checkpoint",
        "--latency-model",
        model,
        "--limit",
        f"latency_ms={slowest * 2}",
    )
    small = (
        "--finalists",
        2,
        *(w for s in ("samples=8", "rounds=1", "per_round=2") for w in ("--set", s)),
    )
    assert "measured (ms)" in run(*search, "--out", out, "--strategy", "ranknas", *small)
    finalist = json.loads((out / "finalists.json").read_text())["finalists"][0]
    assert finalist["measured"]["latency_ms"] > 0 and {"params_m", "flops_g"} <= finalist["metrics"].keys()
    run("report", out)
    assert "toy_lm" in (out / "report.html").read_text()
    assert "rnn       3     24" in run("report", "architecture", tmp_path / "a.json")
