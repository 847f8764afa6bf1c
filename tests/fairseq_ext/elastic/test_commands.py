"""What is made of a trained network goes through every command as other supernets do."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest

from fairseq_ext.checkpoint import read_checkpoint
from nas_core.cli import main
from nas_core.space import Architecture
from nas_core.supernet import open_supernet
from tests.fairseq_ext.elastic.conftest import FORMS
from tests.fairseq_ext.running import DECODING, USER_DIR, passed, run

TRAINING = [
    "--user-dir", USER_DIR, "--optimizer", "adam", "--lr", 0.01, "--batch-size", 32, "--max-update", 2, "--cpu",
    "--num-workers", 0, "--disable-validation", "--distributed-world-size", 1,
    "--criterion", "label_smoothed_cross_entropy",
]  # fmt: skip


def nas_ext(*arguments: object) -> None:
    assert main([str(argument) for argument in arguments]) == 0


@pytest.fixture(scope="module")
def folder(transformer: Callable[..., Path], joined: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``supernet.pt`` with experts, made of a network with learned positions, and ``subnet.pt``, its smallest."""
    folder = tmp_path_factory.mktemp("converted")
    given = ["--checkpoint", transformer(*FORMS["learned"]), "--data", joined, "--calibrate", 2]
    nas_ext("elastic", *given, "--mos", "layer", "--out", folder / "supernet.pt")
    supernet = ["--checkpoint", folder / "supernet.pt", "--arch", "smallest"]
    nas_ext("extract", *supernet, "--out", folder / "subnet.pt")
    return folder


def settings(path: Path) -> dict[str, object]:
    return dict(vars(read_checkpoint(path)["cfg"]["model"]))


@pytest.mark.parametrize(
    ("arch", "begin"), [("hat_transformer", "--finetune-from-model"), ("mos_transformer_small", "--restore-file")]
)
def test_training_takes_all_settings_from_the_file(
    folder: Path, joined: Path, arch: str, begin: str, tmp_path: Path
) -> None:
    command = [joined, *TRAINING, "--task", "supernet_translation", "--arch", arch, "--save-dir", tmp_path]
    passed("train", *command, begin, folder / "supernet.pt")
    before, after = settings(folder / "supernet.pt"), settings(tmp_path / "checkpoint_last.pt")
    for name in (
        "search_space_json", "mos", "mos_experts", "positions", "activation_fn", "embedding_scale", "encoder_order",
        "decoder_order", "share_all_embeddings", "max_source_positions", "max_target_positions", "taken_over",
    ):  # fmt: skip
        assert after[name] == before[name], name
    assert before["encoder_order"] is not None and before["mos"] == "layer"
    if begin == "--finetune-from-model":  # the same command again goes on from where it was
        done = run("train", *command, begin, folder / "supernet.pt", "--max-update", 3)
        assert done.code == 0 and len(done.stats("train_inner")) <= 1, (done.err, done.out[-2000:])


def test_a_subnet_is_static_and_trains_and_translates_alone(folder: Path, joined: Path, tmp_path: Path) -> None:
    found = settings(folder / "subnet.pt")
    assert found["encoder_order"] is found["decoder_order"] is None and found["mos"] == "none"
    done = passed("generate", joined, "--path", folder / "subnet.pt", *DECODING)
    assert sorted(done.hypotheses()) == list(range(20))
    command = [joined, *TRAINING, "--arch", "hat_transformer", "--task", "translation", "--save-dir", tmp_path]
    passed("train", *command, "--finetune-from-model", folder / "subnet.pt")
    assert open_supernet(tmp_path / "checkpoint_last.pt").space.cardinality() == 1


def test_search_and_latency(folder: Path, joined: Path, tmp_path: Path) -> None:
    given = ["--checkpoint", folder / "supernet.pt", "--data", joined, "--strategy", "random", "--set", "evaluations=3"]
    nas_ext("search", *given, "--out", tmp_path / "found", "--finalists", 1)
    results = list((tmp_path / "found").rglob("*.json"))
    found = [path for path in results if json.loads(path.read_text()).get("format") == "nas-ext/architecture"]
    assert found and Architecture.load(found[0]) in open_supernet(folder / "supernet.pt").space


@pytest.mark.skipif(find_spec("onnx") is None or find_spec("onnxruntime") is None, reason="needs onnx, onnxruntime")
def test_export(folder: Path, tmp_path: Path) -> None:
    nas_ext("export", "--checkpoint", folder / "subnet.pt", "--out", tmp_path / "onnx")
    assert (tmp_path / "onnx").is_dir() and list((tmp_path / "onnx").glob("*.onnx"))
