"""``nas-ext lab calibrate`` on a made-up supernet, and ``nas-ext search --calibration`` with what it wrote."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from nas_core.cli import main
from nas_core.jobs import Failure
from nas_core.search.calibration.files import load_calibration
from nas_core.search.calibration.model import Calibration
from nas_core.search.checkpoint import CheckpointEvaluation
from nas_core.space import Architecture
from tests.cli.searching import SPACE, Search, score
from tests.toys import ToySupernet

Calibrate = Callable[..., int]


def bleu(architecture: Architecture) -> float:
    """What a network reaches on its own: the supernet's loss says it but for an offset and a little noise."""
    noise = int(architecture.key, 16) % 7 / 100
    return 40 - 4 * score(architecture)["loss"] + noise


def drawn(count: int, seed: int = 0) -> list[Architecture]:
    rows = SPACE.sample_rows(np.random.default_rng(seed), 4 * count)
    return list(dict.fromkeys(SPACE.architectures(rows)))[:count]


def results(path: Path, networks: Sequence[Architecture], **more: Any) -> Path:
    records = [{"genes": one.to_dict(), "metrics": {"test_bleu": bleu(one)}, **more} for one in networks]
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


@pytest.fixture
def calibrate(tmp_path: Path, supernet: ToySupernet) -> Calibrate:
    (tmp_path / "checkpoint.pt").write_bytes(b"weights")

    def call(*arguments: str, out: str = "model.safetensors") -> int:
        files = ["--supernet", str(tmp_path / "checkpoint.pt"), "--out", str(tmp_path / out)]
        return main(["lab", "calibrate", *files, "--metric", "test_bleu", *arguments])

    return call


def test_calibrate_search_train_and_calibrate_again(
    calibrate: Calibrate, run: Search, supernet: ToySupernet, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = results(tmp_path / "first.jsonl", drawn(6), test_set="newstest")
    assert calibrate("--trained", str(first)) == 0
    output = capsys.readouterr().out
    assert "6 trained networks, larger test_bleu is better" in output and "leave-one-out" in output
    assert len(supernet.evaluated) == 6
    by = ["--calibration", str(tmp_path / "model.safetensors"), "--limit", "params_m=0.006"]
    assert run(*by, "--no-measure", limits=False) == 0
    config = yaml.safe_load((tmp_path / "run" / "config.yaml").read_text())["settings"]
    assert config["objectives"] == ["-calibrated_test_bleu", "params_m", "flops_g"][: len(config["objectives"])]
    calibration = load_calibration(tmp_path / "model.safetensors", SPACE)
    finalists = json.loads((tmp_path / "run" / "finalists.json").read_text())["finalists"]
    best = next(one for one in finalists if one["best_of"])
    architectures = [Architecture(best["genes"])]
    assert (
        calibration.predict(architectures, [score(architectures[0])["loss"]])[0]
        == best["metrics"]["calibrated_test_bleu"]
    )
    assert abs(bleu(architectures[0]) - best["metrics"]["calibrated_test_bleu"]) < 0.2
    new = [Architecture(one["genes"]) for one in finalists if Architecture(one["genes"]) not in calibration.trained]
    following = results(tmp_path / "following.jsonl", new[:3], test_set="newstest")
    assert calibrate("--trained", str(first), "--trained", str(following), "--force") == 0
    assert f"{6 + len(new[:3])} trained networks" in capsys.readouterr().out


def rejected(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    error = capsys.readouterr().err.strip()
    assert text in error and error.count("\n") == 0


def test_a_calibration_of_another_supernet_or_data_is_rejected(
    calibrate: Calibrate, run: Search, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert calibrate("--trained", str(results(tmp_path / "r.jsonl", drawn(5)))) == 0
    capsys.readouterr()
    by = ["--calibration", str(tmp_path / "model.safetensors"), "--limit", "params_m=0.006"]
    assert run(*by, "--valid-samples", "9", limits=False) == 2
    rejected("was created with valid_samples None, now valid_samples is 9", capsys)
    assert run(*by, "--further-supernet", str(tmp_path / "checkpoint.pt"), limits=False) == 2
    rejected("was created with 1 supernets, got 2", capsys)
    assert run("--further-supernet", str(tmp_path / "checkpoint.pt")) == 2
    rejected("further_supernet needs calibration", capsys)
    (tmp_path / "checkpoint.pt").write_bytes(b"other weights")
    assert run(*by, limits=False) == 2
    rejected("was created with another supernet than", capsys)
    assert run("--calibration", str(tmp_path / "latency.json")) == 2
    rejected("latency.json is not a complete safetensors file", capsys)
    assert run("--calibration", str(tmp_path / "nothing")) == 2
    rejected("file not found", capsys)


def test_several_supernets(
    calibrate: Calibrate, run: Search, supernet: ToySupernet, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    second = tmp_path / "second.pt"
    second.write_bytes(b"other weights")
    trained = results(tmp_path / "r.jsonl", drawn(5))
    assert calibrate("--supernet", str(second), "--trained", str(trained)) == 0
    assert len(supernet.evaluated) == 10  # each network by both
    by = ["--calibration", str(tmp_path / "model.safetensors"), "--limit", "params_m=0.006"]
    capsys.readouterr()
    assert run(*by, limits=False) == 2
    rejected("was created with 2 supernets, got 1; give all but the first with --further-supernet", capsys)
    assert run(*by, "--further-supernet", str(second), limits=False) == 0
    journal = [json.loads(line) for line in (tmp_path / "run" / "journal.jsonl").read_text().splitlines()]
    assert len(supernet.evaluated) == 10 + 2 * len(journal)
    assert calibrate("--supernet", str(tmp_path / "checkpoint.pt"), "--trained", str(trained), "--force") == 2
    assert "give each supernet once" in capsys.readouterr().err


def test_what_others_evaluate_is_estimated_too() -> None:
    architectures = drawn(5)
    calibration = Calibration(SPACE, "test_bleu").fit(
        architectures, [score(one)["loss"] for one in architectures], [bleu(one) for one in architectures]
    )
    many = CheckpointEvaluation(ToySupernet(SPACE, score), None, calibration).calibrated_many(
        lambda networks: [Failure("lost"), *({"loss": score(one)["loss"]} for one in networks[1:])]
    )
    failed, metrics, _ = many(architectures[:3])
    assert isinstance(failed, Failure) and not isinstance(metrics, Failure)
    assert metrics["calibrated_test_bleu"] == calibration.predict(architectures[1:2], [metrics["loss"]])[0]
