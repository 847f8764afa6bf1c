"""Wrong teachers and options: one line before the first update, and nothing written."""

from __future__ import annotations

import shutil
from argparse import Namespace

import pytest
import torch

from nas_core.supernet.teacher.cache import CacheSettings, TeacherCache
from tests.fairseq_ext.distillation.teachers import CRITERION, PLAIN, SANDWICH, train_plain
from tests.fairseq_ext.running import assert_one_line, run


@pytest.fixture(scope="module")
def files(corpus, tmp_path_factory):
    """Checkpoints of other words, of another task, and such that are none, by what is wrong with them."""
    folder = tmp_path_factory.mktemp("teachers")
    good = train_plain(corpus, folder / "good", "--max-update", 1)
    shutil.copy(good, folder / "good.pt")
    (folder / "truncated.pt").write_bytes(good.read_bytes()[:5000])
    (folder / "text.pt").write_text("no checkpoint\n")
    for name, change in {"more": [*"abc"], "renamed": None}.items():
        shutil.copytree(corpus, folder / name)
        path = folder / name / "dict.tgt.txt"
        lines = path.read_text().splitlines()
        lines = [*lines, *(f"{word} 1" for word in change)] if change else ["other 99", *lines[1:]]
        path.write_text("\n".join(lines) + "\n")
        train_plain(folder / name, folder / f"trained-{name}", "--max-update", 1)
        shutil.copy(folder / f"trained-{name}" / "checkpoint_last.pt", folder / f"{name}.pt")
    state = torch.load(good, weights_only=True)
    state["cfg"]["task"]["_name"] = "language_modeling"
    torch.save(state, folder / "language.pt")
    short = train_plain(corpus, folder / "short", "--max-update", 1, "--max-target-positions", 100)
    shutil.copy(short, folder / "short.pt")
    return folder


def rejected(arguments, tmp_path, *options):
    done = run("train", *arguments, *CRITERION, *options, "--max-update", 1, "--save-dir", tmp_path / "saved")
    assert not list((tmp_path / "saved").glob("*")) and not done.stats("train_inner")
    return done


WRONG = [
    (["none.pt"], ["none.pt is no file", "largest"]),
    (["truncated.pt"], ["truncated.pt cannot be read"]),
    (["text.pt"], ["text.pt cannot be read"]),
    (["more.pt"], ["more.pt has another target vocabulary", "symbols, here"]),
    (["renamed.pt"], ["another target vocabulary", "'other', here"]),
    (["language.pt"], ["--task language_modeling", "expected a model of --task translation"]),
    (["short.pt"], ["reads sentences of (1024, 100) tokens", "--max-target-positions"]),
    ([], ["--teacher FILE or --teacher largest"]),
    (["largest"], ["--sampling sandwich"]),
    (["largest", *SANDWICH, "--teacher-cache", "folder"], ["changes with every update"]),
    (["largest", *SANDWICH, "--subnet", "ARCH"], ["--teacher largest needs a space of more than one network"]),
    (["good.pt", "--teacher-cache", "folder", "--distill-hidden", 1], ["neither hidden states"]),
    (["good.pt", "--distill-weight", 1.5], ["--distill-weight is 1.5", "0 to 1"]),
    (["good.pt", "--distill-temperature", 0], ["--distill-temperature is 0"]),
    (["good.pt", "--teacher-top-k", -1], ["--teacher-top-k is -1"]),
    (["good.pt", "--distill-attention", -1], ["--distill-attention is -1"]),
    (["good.pt", "--ignore-prefix-size", 1], ["--ignore-prefix-size"]),
    (["good.pt", "--distill-hidden", 1], ["one 'nas-ext elastic'", "fairseq's own"]),
]


@pytest.mark.parametrize(("options", "parts"), WRONG, ids=lambda value: "-".join(map(str, value))[:40])
def test_teachers_and_options_that_are_rejected(arguments, files, architecture_file, tmp_path, options, parts):
    if options:
        name = options[0]
        options = ["--teacher", name if name == "largest" else files / name, *options[1:]]
    options = [architecture_file if option == "ARCH" else option for option in options]
    assert_one_line(rejected(arguments, tmp_path, *options), *parts)


@pytest.mark.parametrize("stored", ["args", "namespace"])
def test_settings_of_a_teacher_may_be_stored_in_any_way(arguments, files, tmp_path, stored):
    """Before 2021 all of them were in one namespace; some programs keep that of a group."""
    state = torch.load(files / "good.pt", weights_only=True)
    groups = {name: vars(group) if isinstance(group, Namespace) else group for name, group in state["cfg"].items()}
    if stored == "args":
        flat = {name: value for group in groups.values() if isinstance(group, dict) for name, value in group.items()}
        kinds = {name: groups[name]["_name"] for name in ("task", "criterion", "optimizer", "lr_scheduler")}
        state |= {"cfg": None, "args": Namespace(**{**flat, **groups["model"], **kinds, "arch": "transformer"})}
    else:
        options = {name: value for name, value in groups["task"].items() if name != "_name"}
        state["cfg"]["task"] = Namespace(**options, task="translation")
    torch.save(state, tmp_path / "teacher.pt")
    done = run("train", *arguments, *CRITERION, "--teacher", tmp_path / "teacher.pt", "--max-update", 1,
               "--save-dir", tmp_path / "saved")  # fmt: skip
    assert done.code == 0 and done.stats("train_inner")[0]["distill_loss"] > 0, done.err


def test_a_teacher_whose_data_is_gone_is_compared_by_size(arguments, files, tmp_path):
    """With the same number of words it teaches, and a line says what was not compared."""
    for name in ("more", "renamed"):
        (files / name).rename(files / f"moved-{name}")
    try:
        done = rejected(arguments, tmp_path, "--teacher", files / "more.pt")
        assert_one_line(done, "more.pt does not fit", "vocabulary of --data")
        done = run("train", *arguments, *CRITERION, "--teacher", files / "renamed.pt", "--max-update", 1,
                   "--save-dir", tmp_path)  # fmt: skip
        assert done.code == 0 and "only the sizes of its dictionaries are compared" in done.out
    finally:
        for name in ("more", "renamed"):
            (files / f"moved-{name}").rename(files / name)


def test_a_cache_of_another_teacher_or_of_other_data(arguments, corpus, files, tmp_path):
    settings = CacheSettings(teacher="t", data="d", words=20, kept=4)
    TeacherCache(tmp_path / "cache", settings, [1, 2])
    before = {path.name: path.read_bytes() for path in (tmp_path / "cache").iterdir()}
    options = ["--teacher", files / "good.pt", "--teacher-cache", tmp_path / "cache"]
    assert_one_line(rejected(arguments, tmp_path, *options), "the cache of another teacher", "new folder")
    assert {path.name: path.read_bytes() for path in (tmp_path / "cache").iterdir()} == before
    command = [f"{corpus}:{corpus}", *arguments[1:]]
    assert_one_line(rejected(command, tmp_path, *options), "--teacher-cache needs one data folder")


def test_masks_that_are_drawn_anew_have_no_cache(files, tmp_path):
    (tmp_path / "dict.txt").write_text("a 3\nb 2\n")
    done = run("train", tmp_path, *PLAIN[18:], "--user-dir", "fairseq_ext", "--task", "masked_lm", "--arch",
               "roberta_base", "--criterion", "distilled_masked_lm", "--teacher", files / "good.pt", "--encoder-layers",
               1, "--encoder-embed-dim", 16, "--encoder-attention-heads", 2, "--teacher-cache", tmp_path / "cache",
               "--save-dir", tmp_path / "saved")  # fmt: skip
    assert_one_line(done, "masks are drawn anew")
