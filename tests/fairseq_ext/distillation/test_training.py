"""Training with a teacher through fairseq's own commands."""

from __future__ import annotations

import pytest
import torch

from fairseq_ext.checkpoint import read_state
from tests.fairseq_ext.distillation.teachers import CRITERION, SANDWICH, train_plain
from tests.fairseq_ext.running import CPU, FORMS, OWN, USER_DIR, passed, run


@pytest.fixture(scope="module")
def plain(corpus, tmp_path_factory):
    """A trained model of fairseq's own."""
    return train_plain(corpus, tmp_path_factory.mktemp("plain"))


def losses(done):
    assert done.code == 0, done.err
    rows = [row["distill_loss"] for row in done.stats("train_inner")]
    assert rows and all(loss > 0 for loss in rows)
    return rows


def test_a_teacher_changes_no_draw_no_validation_and_no_checkpoint(arguments, corpus, plain, tmp_path):
    teacher = tmp_path / "teacher.pt"
    teacher.write_bytes(plain.read_bytes())
    options = [*SANDWICH, "--max-update", 2]
    without = run("train", *arguments, *options, "--save-dir", tmp_path / "without")
    done = run("train", *arguments, *options, *CRITERION, "--teacher", teacher, "--save-dir", tmp_path / "with")
    assert len(losses(done)) == 2 and done.drawn == without.drawn
    assert [row.keys() for row in done.stats("valid")] == [row.keys() for row in without.stats("valid")]
    states = [read_state(tmp_path / name / "checkpoint_last.pt") for name in ("without", "with")]
    assert states[0].keys() == states[1].keys() and states[0]["model"].keys() == states[1]["model"].keys()
    teacher.unlink()  # validation needs none
    passed("validate", corpus, "--task", "translation", "--user-dir", USER_DIR, *CPU[:3],
           "--path", tmp_path / "with" / "checkpoint_last.pt", "--batch-size", 16)  # fmt: skip


def test_the_largest_subnet_is_a_teacher_and_runs_first(arguments, tmp_path):
    done = run("train", *arguments, *CRITERION, *SANDWICH, "--teacher", "largest", "--disable-validation",
               "--max-update", 2, "--save-dir", tmp_path)  # fmt: skip
    losses(done)
    largest = done.drawn[0].number("decoder.layers"), done.drawn[0].number("encoder.embed_dim")
    assert largest == (2, 16) and done.drawn[0] != done.drawn[1]


@pytest.mark.parametrize("teacher", ["plain", "largest"])
def test_a_continued_training_is_the_uninterrupted_one(arguments, plain, tmp_path, teacher):
    options = [*SANDWICH, *CRITERION, "--dropout", 0.1, "--teacher", "largest" if teacher == "largest" else plain]

    def train(name, updates):
        options_of_run = [
            "--batch-size",
            64,
            "--save-dir",
            tmp_path / name,
            "--max-update",
            updates,
            "--valid-random",
            0,
        ]
        passed("train", *arguments, *options, *options_of_run)
        return read_state(tmp_path / name / "checkpoint_last.pt")["model"]

    train("interrupted", 3)  # within the first epoch of four updates
    continued, uninterrupted = train("interrupted", 6), train("uninterrupted", 6)
    assert all(torch.equal(continued[name], uninterrupted[name]) for name in uninterrupted)


@pytest.mark.parametrize(("kind", "criterion"), [("language", "cross_entropy"), ("masked_lm", "masked_lm")])
def test_models_of_one_language(own_model, text, tmp_path, kind, criterion):
    form = {"language": "post-norm", "masked_lm": "base"}[kind]
    teacher = own_model(kind, form)
    common = [text, "--user-dir", USER_DIR, *OWN[kind][1], *FORMS[kind][form], "--criterion", f"distilled_{criterion}"]
    common += ["--teacher", teacher, "--optimizer", "adam", "--max-update", 2, *CPU, "--disable-validation"]
    common += ["--log-format", "json", "--log-interval", 1]
    losses(run("train", *common, "--save-dir", tmp_path / "student"))
