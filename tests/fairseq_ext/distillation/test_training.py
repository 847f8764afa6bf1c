"""Training with a teacher through fairseq's own commands."""

from __future__ import annotations

import json
import random

import pytest
import torch

from fairseq_ext.checkpoint import read_state
from nas_core.supernet import open_supernet
from tests.fairseq_ext.distillation.teachers import CRITERION, PLAIN, SANDWICH, left_of_teacher, train_plain
from tests.fairseq_ext.running import SPACE, USER_DIR, assert_one_line, run, subnet


@pytest.fixture(scope="module")
def plain(corpus, tmp_path_factory):
    """A trained model of fairseq's own."""
    return train_plain(corpus, tmp_path_factory.mktemp("plain"))


def losses(done, name="distill_loss"):
    assert done.code == 0, done.err
    return [row[name] for row in done.stats("train_inner")]


@pytest.mark.parametrize("sampling", ["spos", "sandwich"])
@pytest.mark.parametrize("kind", ["plain", "supernet"])
def test_a_supernet_learns_from_a_checkpoint(arguments, plain, trained, tmp_path, kind, sampling):
    teacher = plain if kind == "plain" else trained("neuron")
    before = teacher.read_bytes()
    done = run(
        "train", *arguments, *CRITERION, "--teacher", teacher, "--task", "supernet_translation", "--sampling", sampling,
        "--save-dir", tmp_path, "--max-update", 3,
    )  # fmt: skip
    assert len(losses(done)) == 3 and all(loss > 0 for loss in [*losses(done), *losses(done, "nll_loss")])
    (valid,) = done.stats("valid")
    assert "valid_distill_loss" not in valid and valid["valid_largest_loss"] > 0
    assert teacher.read_bytes() == before


def test_the_largest_subnet_teaches_and_runs_first(arguments, tmp_path):
    done = run("train", *arguments, *CRITERION, *SANDWICH, "--teacher", "largest", "--distill-hidden", 0.1,
               "--distill-attention", 0.1, "--save-dir", tmp_path, "--max-update", 2)  # fmt: skip
    for name in ("distill_loss", "hidden_loss", "attention_loss"):
        assert all(loss > 0 for loss in losses(done, name))
    largest = done.drawn[0].number("decoder.layers"), done.drawn[0].number("encoder.embed_dim")
    assert largest == (2, 16) and done.drawn[0] == done.drawn[1] != done.drawn[2]
    checkpoint, extracted = tmp_path / "checkpoint_last.pt", tmp_path / "subnet.pt"
    open_supernet(checkpoint).extract(SPACE.smallest(), extracted)
    assert left_of_teacher(extracted) == ("label_smoothed_cross_entropy", set())
    done = run("validate", arguments[0], "--task", "translation", "--user-dir", USER_DIR, "--cpu", "--num-workers", 0,
               "--path", extracted, "--batch-size", 16, "--valid-subset", "valid")  # fmt: skip
    assert done.code == 0 and "valid" in done.out, done.err


def test_a_teacher_changes_no_draw_and_no_checkpoint(arguments, plain, tmp_path):
    """Architectures are those of a training without it; a checkpoint has the same parts."""
    options = [*SANDWICH, "--max-update", 2]
    without = run("train", *arguments, *options, "--save-dir", tmp_path / "without")
    taught = run("train", *arguments, *options, *CRITERION, "--teacher", plain, "--save-dir", tmp_path / "with")
    assert taught.drawn == without.drawn, taught.err
    states = [read_state(tmp_path / name / "checkpoint_last.pt") for name in ("without", "with")]
    assert states[0].keys() == states[1].keys() and states[1]["criterion"] is None
    for part in ("model", "last_optimizer_state"):
        assert states[0][part].keys() == states[1][part].keys()
    moments = [len(state["last_optimizer_state"]["state"]) for state in states]
    assert moments[0] == moments[1]


@pytest.mark.parametrize("teacher", ["file", "cached", "largest"])
def test_a_training_that_is_continued_is_the_one_that_was_not_interrupted(arguments, plain, tmp_path, teacher):
    options = [*SANDWICH, *CRITERION, "--dropout", 0.1, "--teacher", "largest" if teacher == "largest" else plain]

    def train(name, updates):
        cache = ["--teacher-cache", tmp_path / f"cache-{name}", "--teacher-top-k", 5] if teacher == "cached" else []
        done = run("train", *arguments, *options, *cache, "--save-dir", tmp_path / name, "--max-update", updates)
        assert done.code == 0, done.err
        return read_state(tmp_path / name / "checkpoint_last.pt")["model"]

    train("interrupted", 9)
    continued, whole = train("interrupted", 16), train("whole", 16)
    assert all(torch.equal(continued[name], whole[name]) for name in whole)


def test_what_the_teacher_said_is_read_from_disk(arguments, plain, tmp_path):
    """Once every sentence was seen, a training no longer asks; with all words it is that without a cache."""
    options = [*CRITERION, "--teacher", plain, "--max-epoch", 2, "--dropout", 0.0]
    cache = ["--teacher-cache", tmp_path / "cache", "--teacher-top-k", 1000]
    first = run("train", *arguments, *options, *cache, "--save-dir", tmp_path / "first")
    again = run("train", *arguments, *options, *cache, "--save-dir", tmp_path / "again")
    live = run("train", *arguments, *options, "--save-dir", tmp_path / "live")
    assert losses(first) == losses(again) and len(losses(first)) == 26
    assert losses(first) == pytest.approx(losses(live), abs=5e-3)
    assert "0 of 200 sentences" in first.out and "200 of 200 sentences" in again.out
    about = json.loads((tmp_path / "cache" / "teacher.json").read_text())
    assert about["samples"] == 200 and about["kept"] == about["words"]


def test_an_extracted_network_takes_the_same_teacher(arguments, corpus, plain, trained, tmp_path):
    supernet = open_supernet(trained("neuron"))
    supernet.extract(subnet(), tmp_path / "subnet.pt")
    command = [argument for argument in arguments[:3]] + [
        "--arch",
        "hat_transformer",
        "--optimizer",
        "adam",
        "--lr",
        1e-3,
    ]
    done = run(
        "train", *command, "--finetune-from-model", tmp_path / "subnet.pt", *CRITERION, "--teacher", plain, "--cpu",
        "--batch-size", 16, "--num-workers", 0, "--distributed-world-size", 1, "--log-format", "json",
        "--log-interval", 1, "--max-update", 2, "--save-dir", tmp_path / "static",
    )  # fmt: skip
    assert all(loss > 0 for loss in losses(done)) and len(losses(done)) == 2


def test_a_subnet_is_compared_layer_by_layer_with_the_supernet_it_was_taken_from(arguments, trained, tmp_path):
    """The supernet is its teacher: both are of one file."""
    done = run(
        "train", *arguments, *CRITERION, "--mos", "neuron", "--finetune-from-model", trained("neuron"),
        "--teacher", trained("neuron"), "--distill-hidden", 1, "--max-update", 2, "--save-dir", tmp_path,
    )  # fmt: skip
    assert all(loss > 0 for loss in losses(done, "hidden_loss"))


def test_a_subnet_of_a_supernet_from_scratch_is_refused_without_advice_that_would_be_too(arguments, trained, tmp_path):
    """Nothing in it says of which supernet it was."""
    open_supernet(trained("neuron")).extract(SPACE.smallest(), tmp_path / "small.pt")
    done = run(
        "train", *arguments[:3], "--arch", "hat_transformer", "--optimizer", "adam", "--cpu", *CRITERION,
        "--finetune-from-model", tmp_path / "small.pt", "--teacher", trained("neuron"), "--distill-hidden", 1,
        "--batch-size", 16, "--num-workers", 0, "--distributed-world-size", 1, "--save-dir", tmp_path / "static",
    )  # fmt: skip
    assert_one_line(done, "different ones", "from the file of that teacher", "only if 'nas-ext elastic' made")


def test_a_network_that_was_taken_out_remembers_which_layers_it_kept(arguments, trained, tmp_path):
    """Of a supernet that keeps its second decoder layer longest; another take-over has another order of channels."""
    state = torch.load(trained("layer"), weights_only=True)
    vars(state["cfg"]["model"]).update(taken_over="a digest", decoder_order=[1, 0])
    torch.save(state, tmp_path / "supernet.pt")
    open_supernet(tmp_path / "supernet.pt").extract(SPACE.smallest(), tmp_path / "small.pt")
    stored = read_state(tmp_path / "small.pt")["cfg"]["model"]
    assert stored.kept_layers == {"decoder": [1]} and stored.decoder_order is None
    command = [
        "train", *arguments[:3], "--arch", "hat_transformer", "--optimizer", "adam", "--lr", 1e-3, "--cpu", *CRITERION,
        "--finetune-from-model", tmp_path / "small.pt", "--teacher", tmp_path / "supernet.pt", "--distill-hidden", 1,
        "--batch-size", 16, "--num-workers", 0, "--distributed-world-size", 1, "--log-format", "json",
        "--log-interval", 1, "--max-update", 1, "--save-dir", tmp_path / "static",
    ]  # fmt: skip
    assert losses(run(*command), "hidden_loss")[0] > 0
    vars(state["cfg"]["model"]).update(taken_over="another")
    torch.save(state, tmp_path / "supernet.pt")
    assert_one_line(run(*command, "--save-dir", tmp_path / "other"), "one 'nas-ext elastic'", "different ones")


def test_fairseqs_own_model_takes_a_supernet_as_teacher(corpus, trained, tmp_path):
    done = run("train", corpus, "--user-dir", USER_DIR, *PLAIN, *CRITERION, "--teacher", trained("layer"),
               "--max-update", 2, "--save-dir", tmp_path)  # fmt: skip
    assert all(loss > 0 for loss in losses(done))


def test_validating_needs_no_teacher(arguments, corpus, plain, tmp_path):
    teacher = tmp_path / "teacher.pt"
    teacher.write_bytes(plain.read_bytes())
    done = run("train", *arguments, *CRITERION, "--teacher", teacher, "--max-update", 1, "--save-dir", tmp_path)
    assert done.code == 0, done.err
    teacher.unlink()
    done = run("validate", corpus, "--task", "translation", "--user-dir", USER_DIR, "--cpu", "--num-workers", 0,
               "--path", tmp_path / "checkpoint_last.pt", "--batch-size", 16, "--valid-subset", "valid")  # fmt: skip
    assert done.code == 0, done.err


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    """A folder of fairseq-preprocess with one language, for language models."""
    folder, stream = tmp_path_factory.mktemp("text"), random.Random(1)
    for split, lines in (("train", 60), ("valid", 10)):
        rows = (" ".join(f"w{stream.randrange(9)}" for _ in range(stream.randint(3, 9))) for _ in range(lines))
        (folder / split).write_text("".join(row + "\n" for row in rows))
    done = run("preprocess", "--only-source", "--trainpref", folder / "train", "--validpref", folder / "valid",
               "--destdir", folder / "bin", "--workers", 1)  # fmt: skip
    assert done.code == 0, done.err
    return folder / "bin"


LANGUAGE = ["--task", "language_modeling", "--arch", "transformer_lm", "--decoder-embed-dim", 16, "--decoder-layers", 1,
            "--decoder-ffn-embed-dim", 16, "--decoder-attention-heads", 2, "--tokens-per-sample", 16]  # fmt: skip
MASKED = ["--task", "masked_lm", "--arch", "roberta_base", "--encoder-layers", 1, "--encoder-embed-dim", 16,
          "--encoder-ffn-embed-dim", 16, "--encoder-attention-heads", 2, "--tokens-per-sample", 16]  # fmt: skip
SHORT = ["--user-dir", USER_DIR, "--optimizer", "adam", "--lr", 0.01, "--cpu", "--num-workers", 0,
         "--batch-size", 4, "--distributed-world-size", 1, "--log-format", "json", "--log-interval", 1,
         "--no-epoch-checkpoints"]  # fmt: skip


@pytest.mark.parametrize(
    ("network", "own", "distilled"),
    [(LANGUAGE, "cross_entropy", "distilled_cross_entropy"), (MASKED, "masked_lm", "distilled_masked_lm")],
    ids=["language", "masked"],
)
def test_models_of_one_language(text, tmp_path, network, own, distilled):
    done = run("train", text, *SHORT, *network, "--criterion", own, "--max-update", 4, "--save-dir", tmp_path / "own")
    assert done.code == 0, done.err
    teacher = tmp_path / "own" / "checkpoint_last.pt"
    options = ["--criterion", distilled, "--teacher", teacher, "--save-dir", tmp_path / "taught", "--max-update", 4]
    done = run("train", text, *SHORT, *network, *options)
    assert all(loss > 0 for loss in losses(done)) and len(losses(done)) == 4
    if own == "cross_entropy":
        supernet = ["--task", "supernet_language_modeling", "--arch", "mos_transformer_lm", "--sampling", "sandwich"]
        done = run("train", text, *SHORT, *supernet, "--tokens-per-sample", 16, "--valid-random", 0, *options[:4],
                   "--max-update", 1, "--save-dir", tmp_path / "supernet")  # fmt: skip
        assert losses(done)[0] > 0
        cached = [*options[:-4], "--teacher-cache", tmp_path / "cache", "--save-dir", tmp_path / "c", "--max-update", 4]
        assert len(losses(run("train", text, *SHORT, *network, *cached))) == 4
