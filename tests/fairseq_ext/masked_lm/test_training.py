"""Supernets of masked language models trained by fairseq's own commands, extracted, and trained on."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from fairseq_ext.checkpoint import read_state
from fairseq_ext.host import HOST
from tests.fairseq_ext.running import CLASSES, MASKED, passed
from tests.fairseq_ext.running import MASKED_SPACE as SPACE

Trained = Callable[[str], Path]


def test_a_supernet_learns_the_pattern(trained: Trained) -> None:
    supernet = HOST.open(trained("neuron"))
    for architecture in (SPACE.largest(), SPACE.smallest()):
        metrics = supernet.evaluate(architecture)
        assert set(metrics) == {"loss"} and metrics == supernet.evaluate(architecture)
        assert metrics["loss"] < 0.8 * math.log2(12), "words are not guessed by their numbers alone"


def test_the_sandwich_with_the_largest_subnet_as_teacher_of_three_experts(
    text: Path, options: list[object], space_file: Path, tmp_path: Path
) -> None:
    network = [*MASKED, "--task", "supernet_masked_lm", "--sampling", "sandwich", "--arch", "mos_roberta_small"]
    network += ["--search-space", space_file, "--criterion", "distilled_masked_lm", "--teacher", "largest"]
    network += ["--distill-weight", 0.9, "--mos-experts", 3, "--valid-random", 1]
    validated = [option for option in options if option != "--disable-validation"]
    done = passed("train", text, *validated, *network, "--max-update", 2, "--save-dir", tmp_path)
    for row in done.stats("train_inner"):
        assert row["distill_loss"] > 0
    (stats,) = done.stats("valid")
    assert {"valid_smallest_loss", "valid_largest_loss", "valid_random1_loss", "valid_loss"} <= set(stats)
    supernet, path = HOST.open(tmp_path / "checkpoint_last.pt"), tmp_path / "subnet.pt"
    supernet.extract(SPACE.smallest(), path)
    assert read_state(path)["cfg"]["task"]["_name"] == "masked_lm"
    expected = supernet.evaluate(SPACE.smallest())["loss"]
    assert HOST.open(path).evaluate(SPACE.smallest())["loss"] == pytest.approx(expected, abs=1e-5)


def test_an_extracted_network_is_the_subnet_and_trains_on(
    trained: Trained, text: Path, options: list[object], tmp_path: Path
) -> None:
    supernet = HOST.open(trained("neuron"))
    architecture = SPACE.smallest()
    expected, path = supernet.evaluate(architecture), tmp_path / "subnet.pt"
    count = supernet.extract(architecture, path)
    static = HOST.open(path)
    assert static.space.cardinality() == 1 and static.space.largest() == architecture
    assert static.evaluate(architecture)["loss"] == pytest.approx(expected["loss"], abs=1e-5)
    assert count == sum(parameter.numel() for parameter in static.model.parameters())  # type: ignore[attr-defined]
    network = [*MASKED, "--task", "masked_lm", "--arch", "hat_roberta", "--finetune-from-model", path]
    passed("train", text, *options, *network, "--max-update", 10, "--lr", 0.005, "--save-dir", tmp_path / "on")
    assert HOST.open(tmp_path / "on" / "checkpoint_last.pt").evaluate(architecture)["loss"] < expected["loss"]


def test_a_supernet_learns_to_tell_sentences_apart(
    trained: Trained, labelled: Path, options: list[object], tmp_path: Path
) -> None:
    network = ["--task", "sentence_prediction", *CLASSES, "--arch", "mos_roberta_small"]
    passed("train", labelled, *options, *network, "--finetune-from-model", trained("neuron"), "--max-update", 40,
           "--save-dir", tmp_path / "a")  # fmt: skip
    supernet = HOST.open(tmp_path / "a" / "checkpoint_last.pt")
    metrics = supernet.evaluate(SPACE.largest())
    assert set(metrics) == {"loss", "accuracy"} and metrics["accuracy"] > 0.8
    assert supernet.task["classes"] == 2 and supernet.units["loss"] == "bits per sequence"
    supernet.extract(SPACE.smallest(), tmp_path / "small.pt")
    static = HOST.open(tmp_path / "small.pt")
    assert static.evaluate(SPACE.smallest()) == pytest.approx(supernet.evaluate(SPACE.smallest()), abs=1e-5)


def test_heads_of_a_checkpoint_are_loaded_on_request(
    trained: Trained, text: Path, options: list[object], tmp_path: Path
) -> None:
    state = read_state(trained("neuron"))
    shapes = {"dense.weight": (24, 24), "dense.bias": (24,), "out_proj.weight": (3, 24), "out_proj.bias": (3,)}
    head = {f"net.classification_heads.other.{name}": torch.zeros(shape) for name, shape in shapes.items()}
    torch.save({**state, "model": {**state["model"], **head}}, tmp_path / "head.pt")
    assert list(HOST.open(tmp_path / "head.pt").model.classification_heads) == []  # type: ignore[attr-defined]
    network = [*MASKED, "--task", "masked_lm", "--arch", "mos_roberta", "--finetune-from-model", tmp_path / "head.pt"]
    passed("train", text, *options, *network, "--max-update", 1, "--load-checkpoint-heads", "--save-dir", tmp_path)
    assert set(head) <= set(read_state(tmp_path / "checkpoint_last.pt")["model"])
