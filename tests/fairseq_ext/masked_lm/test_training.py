"""Supernets of masked language models trained by fairseq's own commands, extracted, and trained on."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from fairseq_ext.checkpoint import read_state
from fairseq_ext.host import HOST
from nas_core.space import Architecture
from nas_core.supernet.sampling import draw
from tests.fairseq_ext.masked_lm.training import COMMON, MASKED, SPACE
from tests.fairseq_ext.running import passed, run

Trained = Callable[[str], Path]


def test_a_supernet_learns_the_pattern(trained: Trained) -> None:
    supernet = HOST.open(trained("neuron"))
    for architecture in (SPACE.largest(), SPACE.smallest()):
        metrics = supernet.evaluate(architecture)
        assert set(metrics) == {"loss"} and metrics == supernet.evaluate(architecture)
        assert metrics["loss"] < 0.8 * math.log2(12), "words are not guessed by their numbers alone"
    assert supernet.units == {"loss": "bits per masked token"}


def test_an_architecture_is_drawn_for_each_update(
    text: Path, space_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fairseq_ext.masked_lm import MaskedLMModel

    selected: list[Architecture] = []
    select = MaskedLMModel.select

    def noted(model: MaskedLMModel, architecture: Architecture) -> object:
        if model.training:
            selected.append(architecture)
        return select(model, architecture)

    monkeypatch.setattr(MaskedLMModel, "select", noted)
    options = [*COMMON, *MASKED, "--task", "masked_lm", "--arch", "hat_roberta_small", "--search-space", space_file]
    passed("train", text, *options, "--seed", 7, "--max-update", 4, "--save-dir", tmp_path)
    expected = [draw(SPACE, update, 7, "gene") for update in range(4)]
    assert selected[-4:] == expected and len(set(expected)) > 1


def test_the_sandwich_and_its_validation(text: Path, space_file: Path, tmp_path: Path) -> None:
    options = [each for each in COMMON if each != "--disable-validation"]
    options += [*MASKED, "--arch", "hat_roberta_small", "--search-space", space_file, "--valid-random", 1]
    options += ["--task", "supernet_masked_lm", "--sampling", "sandwich", "--max-update", 2]
    done = passed("train", text, *options, "--save-dir", tmp_path)
    (stats,) = done.stats("valid")
    assert {"valid_smallest_loss", "valid_largest_loss", "valid_random1_loss", "valid_loss"} <= set(stats)
    extracted = tmp_path / "out.pt"
    HOST.open(tmp_path / "checkpoint_last.pt").extract(SPACE.smallest(), extracted)
    assert read_state(extracted)["cfg"]["task"]["_name"] == "masked_lm"


def test_the_largest_subnet_is_a_teacher_and_experts_are_kept_apart(
    text: Path, space_file: Path, tmp_path: Path
) -> None:
    experts = ["--mos-rank", 2, "--mos-experts", 3]
    options = [
        *COMMON,
        *MASKED,
        "--task",
        "supernet_masked_lm",
        "--sampling",
        "sandwich",
        "--arch",
        "mos_roberta_small",
    ]
    options += ["--search-space", space_file, "--criterion", "distilled_masked_lm", "--teacher", "largest"]
    options += ["--distill-weight", 1, "--mos-apart", 0.1, *experts, "--max-update", 2, "--save-dir", tmp_path]
    done = passed("train", text, *options)
    for row in done.stats("train_inner"):
        assert row["distill_loss"] > 0 and 0.9 < row["experts_alike"] <= 1
    supernet, path = HOST.open(tmp_path / "checkpoint_last.pt"), tmp_path / "subnet.pt"
    supernet.extract(SPACE.smallest(), path)
    expected = supernet.evaluate(SPACE.smallest())["loss"]
    assert HOST.open(path).evaluate(SPACE.smallest())["loss"] == pytest.approx(expected, abs=1e-5)


def test_an_extracted_network_is_the_subnet_and_trains_on(trained: Trained, text: Path, tmp_path: Path) -> None:
    supernet = HOST.open(trained("neuron"))
    architecture = SPACE.smallest()
    expected, path = supernet.evaluate(architecture), tmp_path / "subnet.pt"
    count = supernet.extract(architecture, path)
    static = HOST.open(path)
    assert static.space.cardinality() == 1 and static.space.largest() == architecture
    assert static.evaluate(architecture)["loss"] == pytest.approx(expected["loss"], abs=1e-5)
    assert count == sum(parameter.numel() for parameter in static.model.parameters())  # type: ignore[attr-defined]
    options = [*COMMON, *MASKED, "--task", "masked_lm", "--arch", "hat_roberta", "--finetune-from-model", path]
    done = passed("train", text, *options, "--max-update", 20, "--lr", 0.005, "--save-dir", tmp_path / "on")
    assert "taken from" in done.out and "its architecture" in done.out
    assert done.stats("train_inner")[0]["loss"] < 1.5 * expected["loss"]
    assert HOST.open(tmp_path / "on" / "checkpoint_last.pt").evaluate(architecture)["loss"] < expected["loss"]


def test_a_supernet_learns_to_tell_sentences_apart(trained: Trained, labelled: Path, tmp_path: Path) -> None:
    options = [*COMMON, "--task", "sentence_prediction", "--criterion", "sentence_prediction", "--num-classes", 2]
    options += ["--init-token", 0, "--max-positions", 12, "--arch", "mos_roberta_small"]
    passed("train", labelled, *options, "--finetune-from-model", trained("neuron"), "--max-update", 60,
               "--save-dir", tmp_path / "a")  # fmt: skip
    supernet = HOST.open(tmp_path / "a" / "checkpoint_last.pt", valid_subset="valid")
    metrics = supernet.evaluate(SPACE.largest())
    assert set(metrics) == {"loss", "accuracy"} and metrics["accuracy"] > 0.8
    assert supernet.task["classes"] == 2 and supernet.units["loss"] == "bits per sequence"
    supernet.extract(SPACE.smallest(), tmp_path / "small.pt")
    static = HOST.open(tmp_path / "small.pt")
    assert static.evaluate(SPACE.smallest()) == pytest.approx(supernet.evaluate(SPACE.smallest()), abs=1e-5)


def test_a_network_without_the_head_of_a_checkpoint_leaves_it_out_and_says_so(
    trained: Trained, text: Path, tmp_path: Path
) -> None:
    state = read_state(trained("neuron"))
    shapes = {"dense.weight": (24, 24), "dense.bias": (24,), "out_proj.weight": (3, 24), "out_proj.bias": (3,)}
    head = {f"net.classification_heads.other.{name}": torch.zeros(shape) for name, shape in shapes.items()}
    torch.save({**state, "model": {**state["model"], **head}}, tmp_path / "head.pt")
    assert list(HOST.open(tmp_path / "head.pt").model.classification_heads) == []  # type: ignore[attr-defined]
    options = [*COMMON, *MASKED, "--task", "masked_lm", "--arch", "mos_roberta", "--finetune-from-model"]
    done = run("train", text, *options, tmp_path / "head.pt", "--max-update", 1, "--save-dir", tmp_path / "without")
    assert done.code == 0 and "head other of the checkpoint is left out" in done.out
    passed("train", text, *options, tmp_path / "head.pt", "--max-update", 1, "--load-checkpoint-heads",
               "--save-dir", tmp_path / "with")  # fmt: skip
    assert (
        "net.classification_heads.other.dense.weight" in read_state(tmp_path / "with" / "checkpoint_last.pt")["model"]
    )
