"""Training with a teacher through fairseq's own commands."""

from __future__ import annotations

import json

import pytest
import torch

from fairseq_ext.checkpoint import read_state
from nas_core.supernet import open_supernet
from tests.fairseq_ext.distillation.teachers import CRITERION, SANDWICH, train_plain
from tests.fairseq_ext.running import CPU, FORMS, OWN, SPACE, USER_DIR, assert_one_line, passed, run, subnet

STATIC: list[object] = [
    "--user-dir", USER_DIR, "--arch", "hat_transformer", "--optimizer", "adam", "--lr", 1e-3, "--cpu", *CRITERION,
    "--batch-size", 16, "--num-workers", 0, "--distributed-world-size", 1, "--log-format", "json", "--log-interval", 1,
    "--max-update", 2,
]  # fmt: skip
"""The training of an extracted network."""


@pytest.fixture(scope="module")
def plain(corpus, tmp_path_factory):
    """A trained model of fairseq's own."""
    return train_plain(corpus, tmp_path_factory.mktemp("plain"))


def losses(done, name="distill_loss"):
    assert done.code == 0, done.err
    rows = [row[name] for row in done.stats("train_inner")]
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
    done = run("train", *arguments, *CRITERION, *SANDWICH, "--teacher", "largest", "--distill-hidden", 0.1,
               "--distill-attention", 0.1, "--disable-validation", "--max-update", 2,
               "--save-dir", tmp_path)  # fmt: skip
    for name in ("distill_loss", "hidden_loss", "attention_loss"):
        losses(done, name)
    largest = done.drawn[0].number("decoder.layers"), done.drawn[0].number("encoder.embed_dim")
    assert largest == (2, 16) and done.drawn[0] == done.drawn[1] != done.drawn[2]


@pytest.mark.parametrize("teacher", ["cached", "largest"])
def test_a_continued_training_is_the_uninterrupted_one(arguments, plain, tmp_path, teacher):
    options = [*SANDWICH, *CRITERION, "--dropout", 0.1, "--teacher", "largest" if teacher == "largest" else plain]

    def train(name, updates):
        cache = ["--teacher-cache", tmp_path / f"cache-{name}", "--teacher-top-k", 5] if teacher == "cached" else []
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
        passed("train", *arguments, *options, *cache, *options_of_run)
        return read_state(tmp_path / name / "checkpoint_last.pt")["model"]

    train("interrupted", 3)  # within the first epoch of four updates
    continued, uninterrupted = train("interrupted", 6), train("uninterrupted", 6)
    assert all(torch.equal(continued[name], uninterrupted[name]) for name in uninterrupted)


def test_the_teachers_output_is_read_from_disk(arguments, plain, tmp_path):
    """With all words in the cache, the training is the one without a cache."""
    options = [*CRITERION, "--teacher", plain, "--batch-size", 64, "--max-epoch", 2, "--dropout", 0.0]
    cache = ["--teacher-cache", tmp_path / "cache", "--teacher-top-k", 1000]
    first = run("train", *arguments, *options, *cache, "--save-dir", tmp_path / "first")
    repeated = run("train", *arguments, *options, *cache, "--save-dir", tmp_path / "again")
    live = run("train", *arguments, *options, "--save-dir", tmp_path / "live")
    assert losses(first) == losses(repeated) and len(losses(first)) == 8
    assert losses(first) == pytest.approx(losses(live), abs=5e-3)
    assert "0 of 200 sentences" in first.out and "200 of 200 sentences" in repeated.out
    about = json.loads((tmp_path / "cache" / "teacher.json").read_text())
    assert about["samples"] == 200 and about["kept"] == about["words"]


def test_a_subnet_of_an_unknown_supernet_is_not_compared_by_layers(corpus, trained, tmp_path):
    open_supernet(trained("neuron")).extract(subnet(), tmp_path / "subnet.pt")
    start = ["--finetune-from-model", tmp_path / "subnet.pt", "--save-dir", tmp_path / "static"]
    done = run("train", corpus, *STATIC, *start, "--teacher", trained("neuron"), "--distill-hidden", 1)
    assert_one_line(done, "from different")


def test_an_extracted_network_remembers_which_layers_it_kept(corpus, trained, tmp_path):
    """The supernet keeps its second decoder layer longest; another conversion has another order of channels."""
    state = torch.load(trained("layer"), weights_only=True)
    vars(state["cfg"]["model"]).update(converted="a digest", decoder_order=[1, 0])
    torch.save(state, tmp_path / "supernet.pt")
    open_supernet(tmp_path / "supernet.pt").extract(SPACE.smallest(), tmp_path / "small.pt")
    stored = read_state(tmp_path / "small.pt")["cfg"]["model"]
    assert stored.kept_layers == {"decoder": [1]} and stored.decoder_order is None
    command = ["train", corpus, *STATIC, "--finetune-from-model", tmp_path / "small.pt", "--teacher",
               tmp_path / "supernet.pt", "--distill-hidden", 1]  # fmt: skip
    losses(run(*command, "--save-dir", tmp_path / "static"), "hidden_loss")
    vars(state["cfg"]["model"]).update(converted="another")
    torch.save(state, tmp_path / "supernet.pt")
    assert_one_line(run(*command, "--save-dir", tmp_path / "other"), "from different")


@pytest.mark.parametrize(("kind", "criterion"), [("language", "cross_entropy"), ("masked_lm", "masked_lm")])
def test_models_of_one_language(own_model, text, tmp_path, kind, criterion):
    form = {"language": "post-norm", "masked_lm": "base"}[kind]
    teacher = own_model(kind, form)
    common = [text, "--user-dir", USER_DIR, *OWN[kind][1], *FORMS[kind][form], "--criterion", f"distilled_{criterion}"]
    common += ["--teacher", teacher, "--optimizer", "adam", "--max-update", 2, *CPU, "--disable-validation"]
    common += ["--log-format", "json", "--log-interval", 1]
    cache = ["--teacher-cache", tmp_path / "cache"] if kind == "language" else []
    losses(run("train", *common, *cache, "--save-dir", tmp_path / "student"))
