"""Wrong teachers and options: one line before the first update, and nothing written."""

from __future__ import annotations

import shutil

import pytest
import torch

from tests.fairseq_ext.distillation.teachers import CRITERION, SANDWICH, train_plain
from tests.fairseq_ext.running import assert_one_line, run


@pytest.fixture(scope="module")
def files(corpus, tmp_path_factory):
    """Checkpoints of other words, of another task, and such that are none, by what is wrong with them."""
    folder = tmp_path_factory.mktemp("teachers")
    good = train_plain(corpus, folder / "good", "--max-update", 1)
    shutil.copy(good, folder / "good.pt")
    (folder / "truncated.pt").write_bytes(good.read_bytes()[:5000])
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


@pytest.mark.parametrize(
    ("options", "part"),
    [
        (["none.pt"], "none.pt does not exist"),
        (["truncated.pt"], "truncated.pt cannot be read"),
        (["more.pt"], "has a target dictionary of"),
        (["renamed.pt"], "'other' in the teacher"),
        (["language.pt"], "--task language_modeling"),
        (["short.pt"], "at most (1024, 100) tokens"),
        ([], "--teacher FILE or --teacher largest"),
        (["largest"], "--sampling sandwich"),
        (["largest", *SANDWICH, "--subnet", "ARCH"], "more than one architecture"),
        (["largest", *SANDWICH, "--distill-weight", 1], "--finetune-from-model"),
        (["good.pt", "--distill-weight", 1.5], "--distill-weight is 1.5"),
        (["good.pt", "--ignore-prefix-size", 1], "--ignore-prefix-size"),
    ],
    ids=lambda value: "-".join(map(str, value))[:40],
)
def test_teachers_and_options_that_are_rejected(arguments, files, architecture_file, tmp_path, options, part):
    if options:
        name = options[0]
        options = ["--teacher", name if name == "largest" else files / name, *options[1:]]
    options = [architecture_file if option == "ARCH" else option for option in options]
    assert_one_line(rejected(arguments, tmp_path, *options), part)


def test_a_teacher_whose_data_is_gone_is_compared_by_size(arguments, files, tmp_path):
    """With the same number of words it teaches, and a line says what was not compared."""
    for name in ("more", "renamed"):
        (files / name).rename(files / f"moved-{name}")
    try:
        done = rejected(arguments, tmp_path, "--teacher", files / "more.pt")
        assert_one_line(done, "more.pt do not fit", "dictionaries of --data")
        done = run("train", *arguments, *CRITERION, "--teacher", files / "renamed.pt", "--max-update", 1,
                   "--save-dir", tmp_path)  # fmt: skip
        assert done.code == 0 and "only the sizes of its dictionaries are checked" in done.out
    finally:
        for name in ("more", "renamed"):
            (files / f"moved-{name}").rename(files / name)
