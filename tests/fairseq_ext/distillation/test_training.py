"""Training with a teacher through fairseq's own commands."""

from __future__ import annotations

import json

import pytest
import torch

from fairseq_ext.checkpoint import read_state
from nas_core.supernet import open_supernet
from tests.fairseq_ext.distillation.teachers import CRITERION, PLAIN, SANDWICH, left_of_teacher, train_plain
from tests.fairseq_ext.running import SPACE, USER_DIR, assert_one_line, passed, run, subnet

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
    assert teacher.read_bytes() == plain.read_bytes()
    states = [read_state(tmp_path / name / "checkpoint_last.pt") for name in ("without", "with")]
    assert states[0].keys() == states[1].keys() and states[1]["criterion"] is None
    for part in ("model", "last_optimizer_state"):
        assert states[0][part].keys() == states[1][part].keys()
    moments = [len(state["last_optimizer_state"]["state"]) for state in states]
    assert moments[0] == moments[1]
    teacher.unlink()  # validation needs none
    passed("validate", corpus, "--task", "translation", "--user-dir", USER_DIR, "--cpu", "--num-workers", 0,
               "--path", tmp_path / "with" / "checkpoint_last.pt", "--batch-size", 16)  # fmt: skip


def test_the_largest_subnet_is_a_teacher_and_runs_first(arguments, tmp_path):
    done = run("train", *arguments, *CRITERION, *SANDWICH, "--teacher", "largest", "--distill-hidden", 0.1,
               "--distill-attention", 0.1, "--save-dir", tmp_path, "--max-update", 2)  # fmt: skip
    for name in ("distill_loss", "hidden_loss", "attention_loss"):
        losses(done, name)
    largest = done.drawn[0].number("decoder.layers"), done.drawn[0].number("encoder.embed_dim")
    assert largest == (2, 16) and done.drawn[0] == done.drawn[1] != done.drawn[2]
    open_supernet(tmp_path / "checkpoint_last.pt").extract(SPACE.smallest(), tmp_path / "subnet.pt")
    assert left_of_teacher(tmp_path / "subnet.pt") == ("label_smoothed_cross_entropy", set())


@pytest.mark.parametrize("teacher", ["cached", "largest"])
def test_a_continued_training_is_the_uninterrupted_one(arguments, plain, tmp_path, teacher):
    options = [*SANDWICH, *CRITERION, "--dropout", 0.1, "--teacher", "largest" if teacher == "largest" else plain]

    def train(name, updates):
        cache = ["--teacher-cache", tmp_path / f"cache-{name}", "--teacher-top-k", 5] if teacher == "cached" else []
        options_of_run = ["--batch-size", 64, "--save-dir", tmp_path / name, "--max-update", updates]
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
    again = run("train", *arguments, *options, *cache, "--save-dir", tmp_path / "again")
    live = run("train", *arguments, *options, "--save-dir", tmp_path / "live")
    assert losses(first) == losses(again) and len(losses(first)) == 8
    assert losses(first) == pytest.approx(losses(live), abs=5e-3)
    assert "0 of 200 sentences" in first.out and "200 of 200 sentences" in again.out
    about = json.loads((tmp_path / "cache" / "teacher.json").read_text())
    assert about["samples"] == 200 and about["kept"] == about["words"]


def test_an_extracted_network_takes_the_same_teacher(corpus, plain, trained, tmp_path):
    open_supernet(trained("neuron")).extract(subnet(), tmp_path / "subnet.pt")
    start = ["--finetune-from-model", tmp_path / "subnet.pt", "--save-dir", tmp_path / "static"]
    assert len(losses(run("train", corpus, *STATIC, *start, "--teacher", plain))) == 2
    done = run("train", corpus, *STATIC, *start, "--teacher", trained("neuron"), "--distill-hidden", 1)
    assert_one_line(done, "different ones", "from the file of that teacher")  # nothing says of which supernet it is


def test_a_supernet_is_compared_layer_by_layer_with_its_own_file(arguments, trained, tmp_path):
    done = run(
        "train", *arguments, *CRITERION, "--mos", "neuron", "--finetune-from-model", trained("neuron"),
        "--teacher", trained("neuron"), "--distill-hidden", 1, "--max-update", 2, "--save-dir", tmp_path,
    )  # fmt: skip
    losses(done, "hidden_loss")


def test_an_extracted_network_remembers_which_layers_it_kept(corpus, trained, tmp_path):
    """The supernet keeps its second decoder layer longest; another conversion has another order of channels."""
    state = torch.load(trained("layer"), weights_only=True)
    vars(state["cfg"]["model"]).update(taken_over="a digest", decoder_order=[1, 0])
    torch.save(state, tmp_path / "supernet.pt")
    open_supernet(tmp_path / "supernet.pt").extract(SPACE.smallest(), tmp_path / "small.pt")
    stored = read_state(tmp_path / "small.pt")["cfg"]["model"]
    assert stored.kept_layers == {"decoder": [1]} and stored.decoder_order is None
    command = ["train", corpus, *STATIC, "--finetune-from-model", tmp_path / "small.pt", "--teacher",
               tmp_path / "supernet.pt", "--distill-hidden", 1]  # fmt: skip
    losses(run(*command, "--save-dir", tmp_path / "static"), "hidden_loss")
    vars(state["cfg"]["model"]).update(taken_over="another")
    torch.save(state, tmp_path / "supernet.pt")
    assert_one_line(run(*command, "--save-dir", tmp_path / "other"), "one 'nas-ext elastic'", "different ones")


def test_fairseqs_own_model_takes_a_supernet_as_teacher(corpus, trained, tmp_path):
    losses(run("train", corpus, "--user-dir", USER_DIR, *PLAIN, *CRITERION, "--teacher", trained("layer"),
               "--max-update", 2, "--save-dir", tmp_path))  # fmt: skip


LANGUAGE = ["--task", "language_modeling", "--arch", "transformer_lm", "--decoder-embed-dim", 16, "--decoder-layers", 1,
            "--decoder-ffn-embed-dim", 16, "--decoder-attention-heads", 2, "--tokens-per-sample", 16]  # fmt: skip
MASKED = ["--task", "masked_lm", "--arch", "roberta_base", "--encoder-layers", 1, "--encoder-embed-dim", 16,
          "--encoder-ffn-embed-dim", 16, "--encoder-attention-heads", 2, "--tokens-per-sample", 16]  # fmt: skip
SHORT = ["--user-dir", USER_DIR, "--optimizer", "adam", "--lr", 0.01, "--cpu", "--num-workers", 0,
         "--batch-size", 8, "--distributed-world-size", 1, "--log-format", "json", "--log-interval", 1,
         "--no-epoch-checkpoints"]  # fmt: skip


@pytest.mark.parametrize(
    ("network", "own", "distilled"),
    [(LANGUAGE, "cross_entropy", "distilled_cross_entropy"), (MASKED, "masked_lm", "distilled_masked_lm")],
    ids=["language", "masked"],
)
def test_models_of_one_language(text, tmp_path, network, own, distilled):
    passed("train", text, *SHORT, *network, "--criterion", own, "--max-update", 2, "--save-dir", tmp_path / "own")
    teacher = ["--criterion", distilled, "--teacher", tmp_path / "own" / "checkpoint_last.pt", "--max-update", 2]
    cache = ["--teacher-cache", tmp_path / "cache"] if own == "cross_entropy" else []
    done = run("train", text, *SHORT, *network, *teacher, *cache, "--save-dir", tmp_path / "student")
    assert len(losses(done)) == 2
    if own == "cross_entropy":
        supernet = ["--task", "supernet_language_modeling", "--arch", "mos_transformer_lm_small", "--sampling", "spos"]
        losses(run("train", text, *SHORT, *supernet, "--tokens-per-sample", 16, "--valid-random", 0, *teacher,
                   "--max-update", 1, "--save-dir", tmp_path / "supernet"))  # fmt: skip
