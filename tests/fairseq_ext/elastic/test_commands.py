"""What is made of a trained network goes through every command as other supernets do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from fairseq_ext.checkpoint import read_checkpoint
from nas_core.cli import main
from nas_core.space import Architecture
from nas_core.supernet import open_supernet
from tests.fairseq_ext.running import CPU, DECODING, USER_DIR, passed, run

TRAINING = [
    "--user-dir", USER_DIR, "--optimizer", "adam", "--lr", 0.01, "--batch-size", 32, "--max-update", 2, *CPU,
    "--disable-validation", "--criterion", "label_smoothed_cross_entropy",
]  # fmt: skip


def nas_ext(*arguments: object) -> None:
    assert main([str(argument) for argument in arguments]) == 0


@pytest.fixture(scope="module")
def folder(own_model: Callable[..., Path], joined: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``supernet.pt``, made of a network with learned positions, and ``subnet.pt``, its smallest."""
    folder = tmp_path_factory.mktemp("converted")
    source = ["--checkpoint", own_model("translation", "learned"), "--data", joined, "--calibration-batches", 2]
    nas_ext("elastic", *source, "--out", folder / "supernet.pt")
    nas_ext("extract", "--checkpoint", folder / "supernet.pt", "--arch", "smallest", "--out", folder / "subnet.pt")
    return folder


def settings(path: Path) -> dict[str, object]:
    return dict(vars(read_checkpoint(path)["cfg"]["model"]))


def test_training_takes_all_settings_from_the_file(folder: Path, joined: Path, tmp_path: Path) -> None:
    command = [joined, *TRAINING, "--task", "supernet_translation", "--arch", "hat_transformer"]
    command += ["--finetune-from-model", folder / "supernet.pt", "--save-dir", tmp_path]
    passed("train", *command)
    before, after = settings(folder / "supernet.pt"), settings(tmp_path / "checkpoint_last.pt")
    for name in (
        "search_space_json", "mos", "mos_experts", "positions", "activation_fn", "embedding_scale", "encoder_order",
        "decoder_order", "share_all_embeddings", "max_source_positions", "max_target_positions", "converted",
    ):  # fmt: skip
        assert after[name] == before[name], name
    assert before["encoder_order"] is not None and before["mos"] == "none"
    done = run("train", *command, "--max-update", 3)  # the same command again continues the training
    assert done.code == 0 and len(done.stats("train_inner")) <= 1, (done.err, done.out[-2000:])


def test_a_subnet_is_static_and_trains_and_translates_alone(folder: Path, joined: Path, tmp_path: Path) -> None:
    stored = settings(folder / "subnet.pt")
    assert stored["encoder_order"] is stored["decoder_order"] is None and stored["mos"] == "none"
    assert len(passed("generate", joined, "--path", folder / "subnet.pt", *DECODING).hypotheses()) == 20
    command = [joined, *TRAINING, "--arch", "hat_transformer", "--task", "translation", "--save-dir", tmp_path]
    passed("train", *command, "--finetune-from-model", folder / "subnet.pt")
    assert open_supernet(tmp_path / "checkpoint_last.pt").space.cardinality() == 1


GENES = ("encoder.self_attention", "decoder.self_attention", "decoder.cross_attention")


def test_layers_become_linear_and_their_placement_is_searched(
    own_model: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = ["elastic", "--checkpoint", own_model("translation", "post-norm"), "--space", "attention"]
    source += ["--attention", "softmax,linear", "--calibration-batches", 4]
    supernet, copies = tmp_path / "supernet.pt", tmp_path / "copies.pt"
    nas_ext(*source, "--fit", 10, "--out", supernet)
    assert "64 architectures" in capsys.readouterr().out, "two kinds in six layers"
    nas_ext(*source, "--fit", 0, "--out", copies)

    fitted, copied = open_supernet(supernet), open_supernet(copies)
    assert fitted.space == copied.space and set(fitted.space.largest()["decoder.cross_attention"]) == {"softmax"}
    largest = fitted.space.largest()
    assert fitted.evaluate(largest) == copied.evaluate(largest)
    original = fitted.evaluate(largest)["loss"]
    linear = Architecture({**largest, **{gene: ("linear",) * 2 for gene in GENES}})
    assert abs(fitted.evaluate(linear)["loss"] - original) < abs(copied.evaluate(linear)["loss"] - original)

    result = tmp_path / "run"
    nas_ext("search", "--checkpoint", supernet, "--out", result, "--strategy", "random", "--set", "evaluations=3",
            "--no-measure", "--valid-samples", 10)  # fmt: skip
    assert len((result / "journal.jsonl").read_text().splitlines()) == 3
