"""``nas-ext search`` on a supernet of a made-up host: output files, measured finalists, and wrong input."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from nas_core.cli import main
from nas_core.errors import NasExtError
from nas_core.latency import TimingConfig, load_latency_model
from nas_core.latency.by_genes import LinearModel
from nas_core.latency.machine import describe_machine
from nas_core.models.translation import TranslationWorkloadConfig
from nas_core.options import options_of
from nas_core.report import write_report
from nas_core.search import STRATEGIES
from nas_core.space import Architecture, SearchSpace, get_space, translation_space
from tests.search.saved_before import as_before
from tests.toys import ToySupernet

SPACE = translation_space(
    "toy",
    embed_dims=(16, 8),
    ffn_dims=(32, 16),
    heads=(2, 1),
    encoder_layers=(2,),
    decoder_layers=(2, 1),
    qkv_dim=8,
)
WORKLOAD = TranslationWorkloadConfig(source_vocab=20, target_vocab=24, source_length=4, target_length=3, beam=2)
CHILDREN = ["--mutations", "6", "--crossovers", "6"]
SMALL = {
    "evolution": ["--iterations", "3", "--parents", "4", *CHILDREN],
    "multi-objective": ["--iterations", "3", "--population", "4", *CHILDREN],
}


def score(architecture: Architecture) -> dict[str, float]:
    """Larger is better, up to noise that the architecture decides."""
    noise = int(architecture.key, 16) % 1000 / 1e5
    return {"loss": 5.0 - 0.1 * float(SPACE.encode(architecture).sum()) + noise, "nll_loss": 4.0}


@pytest.fixture
def supernet(monkeypatch: pytest.MonkeyPatch) -> ToySupernet:
    toy = ToySupernet(SPACE, score, {"kind": "translation", "source_vocab": 20, "target_vocab": 24})

    def open_supernet(path: Path, **options: Any) -> ToySupernet:
        assert set(options) == {"data", "valid_subset", "valid_sentences", "device"}
        return toy

    monkeypatch.setattr("nas_core.supernet.host.open_supernet", open_supernet)
    return toy


def latency_model(path: Path, space: SearchSpace = SPACE) -> Path:
    rows = space.sample_rows(np.random.default_rng(0), 80)
    model = LinearModel(space)
    model.fit(rows, 1.0 + space.slots.codes(rows).sum(1) / 100)
    timing = TimingConfig(warmup=0, repeats=2)
    model.info = {
        "settings": {"workload": {"kind": "translation", **asdict(WORKLOAD)}, "timing": asdict(timing), "seed": 0},
        "machine": describe_machine("cpu", 1),
        "reference_ms": 2.0,
    }
    model.save(path)
    return path


Search = Callable[..., int]


@pytest.fixture
def run(tmp_path: Path, supernet: ToySupernet) -> Search:
    (tmp_path / "checkpoint.pt").write_bytes(b"weights")
    model = latency_model(tmp_path / "latency.json")

    def call(*arguments: str, limits: bool = True, out: str = "run") -> int:
        given = ["--latency-model", str(model), "--limit-ms", "2.6", "--limit-ms", "2.2"] if limits else []
        files = ["--checkpoint", str(tmp_path / "checkpoint.pt"), "--out", str(tmp_path / out)]
        by = arguments[arguments.index("--strategy") + 1] if "--strategy" in arguments else "evolution"
        return main(["search", *files, *given, *SMALL.get(by, []), "--finalists", "4", *arguments])

    return call


def test_two_limits_end_in_measured_finalists(
    run: Search, supernet: ToySupernet, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run() == 0
    output = capsys.readouterr().out
    finalists = json.loads((tmp_path / "run" / "finalists.json").read_text())["finalists"]
    limits = {"latency_ms<=2.6": 2.6, "latency_ms<=2.2": 2.2}
    assert {name for finalist in finalists for name in (*finalist["best_of"], *finalist["over_limit"])} == set(limits)
    for finalist in finalists:  # a busy machine may measure all of them above a limit
        assert all(finalist["measured"]["latency_ms"] <= limits[name] for name in finalist["best_of"])
        assert all(finalist["measured"]["latency_ms"] > limits[name] for name in finalist["over_limit"])
        assert all(finalist["metrics"]["latency_ms"] <= limits[name] for name in finalist["best_of"])
    for finalist in finalists:
        assert finalist["key"] in output
        assert finalist["measured"]["latency_ms"] > 0
        assert finalist["measured"]["std_ms"] >= 0
        assert finalist["measured"]["same_machine"]
        assert {"loss", "nll_loss", "latency_ms", "params_m", "flops_g"} <= set(finalist["metrics"])
        assert Architecture.load(tmp_path / "run" / finalist["file"]) in SPACE
    assert "predicted (ms)" in output
    assert "measured (ms)" in output
    assert f"{len(supernet.evaluated)} architectures evaluated (0 of them before)" in output
    assert len(set(supernet.evaluated)) == len(supernet.evaluated)


def test_the_same_command_continues(run: Search, supernet: ToySupernet, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--no-measure") == 0
    before = list(supernet.evaluated)
    assert run("--no-measure") == 0
    assert supernet.evaluated == before
    assert f"({len(before)} of them before)" in capsys.readouterr().out


def test_limits_on_paper_need_no_latency_model(run: Search, tmp_path: Path) -> None:
    assert run("--max-params-m", "0.006", "--max-flops-g", "0.0004", limits=False) == 0
    config = yaml.safe_load((tmp_path / "run" / "config.yaml").read_text())["settings"]
    assert config["objectives"] == ["loss", "params_m", "flops_g"]
    assert list(config["searches"]) == ["params_m<=0.006 flops_g<=0.0004"]
    for line in (tmp_path / "run" / "journal.jsonl").read_text().splitlines():
        metrics = json.loads(line)["metrics"]
        assert metrics["params_m"] <= 0.006
        assert metrics["flops_g"] <= 0.0004


def test_a_search_without_limits_weighs_costs_on_paper(run: Search, tmp_path: Path) -> None:
    assert run("--iterations", "4", limits=False) == 0
    config = yaml.safe_load((tmp_path / "run" / "config.yaml").read_text())["settings"]
    assert config["objectives"] == ["loss", "params_m", "flops_g"]
    assert len(json.loads((tmp_path / "run" / "finalists.json").read_text())["finalists"]) == 4


def test_random_search_with_its_budget(run: Search, tmp_path: Path, supernet: ToySupernet) -> None:
    assert run("--strategy", "random", "--evaluations", "40", limits=False) == 0
    assert len(supernet.evaluated) == 40


def test_ranknas_with_its_budget(run: Search, tmp_path: Path, supernet: ToySupernet) -> None:
    small = ["--samples", "20", "--rankings", "2", "--per-ranking", "5"]
    assert run("--strategy", "ranknas", *small, limits=False) == 0
    assert len(supernet.evaluated) == 20 + 2 * 5
    searches = yaml.safe_load((tmp_path / "run" / "config.yaml").read_text())["settings"]["searches"]
    (settings,) = searches.values()
    assert (settings["strategy"], settings["samples"], settings["keep_genes"]) == ("ranknas", 20, 5)
    again = len(supernet.evaluated)
    assert run("--strategy", "ranknas", *small, limits=False) == 0
    assert len(supernet.evaluated) == again  # all were read from the journal


def test_what_genes_matter_to_is_chosen_and_shown(
    run: Search, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By loss and latency where there is a limit; a run from before limits counted goes on by the loss alone."""
    small = ["--strategy", "ranknas", "--samples", "16", "--rankings", "2", "--per-ranking", "4", "--keep-genes", "1"]
    for out, by in (("both", []), ("loss", ["--prune-by", "metric"])):
        assert run(*small, *by, "--no-measure", out=out) == 0
        state = json.loads((tmp_path / out / "state.json").read_text())["searches"]["latency_ms<=2.6"]
        assert list(state["importance"]) == (["loss"] if by else ["loss", "latency_ms"])
        assert set(state["free_genes"]) <= {choice.name for choice in SPACE.choices}
        page = write_report(tmp_path / out).read_text(encoding="utf-8")
        assert "loss (|tau|)</th>" in page and ("latency_ms (|tau|)" in page) == (not by)
    config = tmp_path / "loss" / "config.yaml"
    content = yaml.safe_load(config.read_text())
    for name, settings in content["settings"]["searches"].items():
        content["settings"]["searches"][name] = as_before(settings)
        del content["settings"]["searches"][name]["prune_by"]
    config.write_text(yaml.safe_dump(content, sort_keys=False))
    files = ("journal.jsonl", "state.json", "finalists.json")
    before = {name: (tmp_path / "loss" / name).read_bytes() for name in files}
    capsys.readouterr()
    assert run(*small, "--no-measure", out="loss") == 2
    assert "prune_by = 'metric', now it is 'metric-and-limits'" in capsys.readouterr().err
    assert run(*small, "--prune-by", "metric", "--no-measure", out="loss") == 0
    assert before == {name: (tmp_path / "loss" / name).read_bytes() for name in files}


@pytest.mark.parametrize(("ranker", "objective"), [("regression", "regression"), ("nn-former", "pairwise")])
def test_ranknas_with_other_rankers(
    run: Search, tmp_path: Path, supernet: ToySupernet, ranker: str, objective: str
) -> None:
    small = ["--strategy", "ranknas", "--samples", "12", "--rankings", "1", "--per-ranking", "4"]
    assert run(*small, "--ranker", ranker, limits=False) == 0
    assert len(supernet.evaluated) == 12 + 4
    searches = yaml.safe_load((tmp_path / "run" / "config.yaml").read_text())["settings"]["searches"]
    (settings,) = searches.values()
    assert (settings["ranker"], settings["trees"]["objective"]) == (ranker, objective)
    assert run(*small, limits=False) == 2  # another ranker does not continue it


def test_one_search_for_the_whole_front(run: Search, tmp_path: Path, supernet: ToySupernet) -> None:
    model = ["--latency-model", str(tmp_path / "latency.json"), "--no-measure"]
    assert run("--strategy", "multi-objective", *model, limits=False) == 0
    assert len(supernet.evaluated) <= 4 + 2 * 12
    settings = yaml.safe_load((tmp_path / "run" / "config.yaml").read_text())["settings"]
    assert settings["objectives"] == ["loss", "latency_ms"]
    assert settings["searches"]["unlimited"]["objectives"] == ["loss", "latency_ms"]
    finalists = json.loads((tmp_path / "run" / "finalists.json").read_text())["finalists"]
    pairs = sorted((f["metrics"]["latency_ms"], f["metrics"]["loss"]) for f in finalists)
    assert len(pairs) == 4
    assert all(a[1] > b[1] for a, b in itertools.pairwise(pairs))  # slower ones are better: a front


def test_the_front_is_one_of_costs_on_paper_without_a_latency_model(run: Search, tmp_path: Path) -> None:
    assert run("--strategy", "multi-objective", "--max-params-m", "0.006", limits=False) == 0
    settings = yaml.safe_load((tmp_path / "run" / "config.yaml").read_text())["settings"]
    assert settings["objectives"] == ["loss", "params_m", "flops_g"]
    assert list(settings["searches"]) == ["params_m<=0.006"]


def test_a_prediction_that_is_too_low_is_no_best_of_its_limit(
    run: Search, supernet: ToySupernet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """What is measured is 15 % above what is predicted: the best of a limit is another one, and the table says so."""
    model, calls = load_latency_model(latency_model(tmp_path / "other.json"), "genes", SPACE), []

    def remeasure(architectures: list[Architecture], *_: Any) -> list[dict[str, Any]]:
        calls.extend(architectures)
        return [{"latency_ms": float(ms) * 1.15, "same_machine": True} for ms in model.predict(architectures)]

    monkeypatch.setattr("nas_core.search.remeasure.remeasure", remeasure)
    assert run() == 0
    output = capsys.readouterr().out
    finalists = json.loads((tmp_path / "run" / "finalists.json").read_text())["finalists"]
    for limit in (2.6, 2.2):
        above = [one for one in finalists if f"latency_ms<={limit}" in one["over_limit"]]
        (best,) = (one for one in finalists if f"latency_ms<={limit}" in one["best_of"])
        assert above and all(one["metrics"]["latency_ms"] <= limit < one["measured"]["latency_ms"] for one in above)
        assert best["measured"]["latency_ms"] <= limit
        assert best["metrics"]["loss"] >= max(one["metrics"]["loss"] for one in above)
        assert f"≤ {limit} ms: {above[0]['key']}, the best by prediction, was measured above it" in output
    assert "measured above" in output.splitlines()[0]
    measured = len(calls)
    assert run() == 0 and len(calls) == measured  # nothing is measured twice
    assert json.loads((tmp_path / "run" / "finalists.json").read_text())["finalists"] == finalists
    assert "the best by prediction, was measured above it" in write_report(tmp_path / "run").read_text(encoding="utf-8")
    assert "over_limit" in (tmp_path / "run" / "finalists.csv").read_text().splitlines()[0]

    slow = {"latency_ms": 9.0, "same_machine": True}
    monkeypatch.setattr("nas_core.search.remeasure.remeasure", lambda some, *_: [slow for _ in some])
    assert run(out="none") == 0
    assert re.search(r"≤ 2.2 ms: none of \d measured was within it, the closest is", capsys.readouterr().out)


def test_the_population_alone_gives_hats_parts(run: Search, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["search", "--checkpoint", str(tmp_path / "checkpoint.pt"), "--out", str(tmp_path / "run")]
    assert main([*given, "--iterations", "4", "--population", "30", "--finalists", "4"]) == 0
    (settings,) = yaml.safe_load((tmp_path / "run" / "config.yaml").read_text())["settings"]["searches"].values()
    assert [settings[name] for name in ("population", "parents", "mutations", "crossovers")] == [30, 6, 12, 12]
    said = capsys.readouterr().err
    assert "at most 102 architectures to evaluate: --population 30 + (--iterations 4 - 1) x (--mutations 12" in said


def test_how_much_will_be_evaluated_is_said_first(run: Search, capsys: pytest.CaptureFixture[str]) -> None:
    small = ["--samples", "10", "--rankings", "1", "--per-ranking", "4"]
    assert run("--strategy", "ranknas", *small, "--trees", "members=1", "--trees", "rounds=5", "--no-measure") == 0
    said = capsys.readouterr().err
    assert "at most 14 architectures in each of 2 searches to evaluate: --samples 10 + --rankings 1 x --per-r" in said


def test_help_shows_the_options_of_all_strategies(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["search", "--help"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    for name, strategy in STRATEGIES.items():
        assert f"{name}: {strategy.purpose}" in shown
        for option in options_of(strategy.config_class):
            assert f"{option.flag} " in shown
    assert "evolution, multi-objective: Populations that are scored, the random first one included (def" in shown
    assert "ranknas: Random architectures that the first ranking is learned from (default: 100)" in shown


def test_ctrl_c_says_that_the_same_command_continues(
    run: Search, supernet: ToySupernet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    real, left = supernet.evaluate, itertools.count(-7)

    def evaluate(architecture: Architecture) -> dict[str, float]:
        if next(left) == 0:
            raise KeyboardInterrupt
        return real(architecture)

    monkeypatch.setattr(supernet, "evaluate", evaluate)
    assert run("--no-measure") == 130
    said = capsys.readouterr().err.splitlines()[-1]
    assert said == f"interrupted: 7 evaluations are kept in {tmp_path / 'run'}; the same command continues"
    assert run("--no-measure") == 0
    assert "(7 of them before)" in capsys.readouterr().out
    log = (tmp_path / "run" / "search.log").read_text()
    assert "stopped (KeyboardInterrupt), 7 evaluated" in log and "7 results were known" in log


@pytest.mark.parametrize(
    ("arguments", "limits", "said"),
    [
        (["--limit-ms", "5"], False, "--limit-ms needs --latency-model"),
        (["--limit-ms", "0.01"], True, "acceptance rate"),
        (["--limit-ms", "-1"], True, "above 0"),
        (["--max-params-m", "0.00001"], False, "lowest values reached: params_m"),
        (["--population", "100"], False, "expected 16"),
        (["--iterations", "0"], False, "--iterations is 0; expected a whole number from 1 on"),
        (["--mutation-prob", "2"], False, "--mutation-prob is 2.0"),
        (["--strategy", "ranknas", "--samples", "1"], False, "samples is 1"),
        (["--strategy", "evolutoin"], False, "Did you mean 'evolution'?"),
        (["--strategy", "ranknas", "--ranker", "nnformer"], False, "Did you mean 'nn-former'?"),
        (["--ranker", "regression"], False, "--ranker is of --strategy ranknas, and the strategy is evolution"),
        (["--prune-by", "metric"], False, "--prune-by is of --strategy ranknas, and the strategy is evolution"),
        (["--strategy", "random", "--parents", "3"], False, "--parents is of --strategy evolution, ranknas, and"),
        (["--strategy", "ranknas", "--trees", "depth=3"], False, "unknown setting of --trees 'depth'"),
        (["--strategy", "ranknas", "--trees", "members=many"], False, "members is 'many'; expected a whole number"),
        (["--strategy", "ranknas", "--prune-by", "loss"], False, "expected one of metric-and-limits, metric"),
        (["--strategy", "multi-objective", "--parents", "8"], False, "the strategy is multi-objective, which takes"),
        (["--latency-model", "nowhere.json"], False, "nowhere.json"),
    ],
)
def test_wrong_input_is_one_line(
    run: Search, arguments: list[str], limits: bool, said: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert run(*arguments, limits=limits) == 2
    error = capsys.readouterr().err.strip()
    assert said in error
    assert error.count("\n") == 0
    assert not (tmp_path / "run").exists()


def test_other_inputs_do_not_continue_a_run(run: Search, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--no-measure") == 0
    assert run("--no-measure", "--seed", "1") == 2
    assert "seed = 0, now it is 1" in capsys.readouterr().err
    (tmp_path / "checkpoint.pt").write_bytes(b"other weights")
    assert run("--no-measure") == 2
    assert "checkpoint_sha256" in capsys.readouterr().err


def test_a_model_of_another_space_is_refused(run: Search, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = latency_model(tmp_path / "other.json", get_space("hat_small"))
    assert run("--latency-model", str(other), "--limit-ms", "5", limits=False) == 2
    assert "hat_small" in capsys.readouterr().err


def test_a_missing_checkpoint_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["search", "--checkpoint", str(tmp_path / "no.pt"), "--out", str(tmp_path / "run")]) == 2
    assert "no.pt" in capsys.readouterr().err


def test_errors_of_the_host_end_the_search(
    run: Search, supernet: ToySupernet, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def evaluate(architecture: Architecture) -> dict[str, float]:
        raise NasExtError("no split 'valid'; give another")

    monkeypatch.setattr(supernet, "evaluate", evaluate)
    assert run() == 2
    assert "no split 'valid'" in capsys.readouterr().err
