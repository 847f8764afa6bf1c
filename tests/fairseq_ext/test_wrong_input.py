"""One line that says what is wrong, an exit code, and no file lost: for fairseq's commands and for ours."""

import hashlib
import io
from contextlib import redirect_stderr, redirect_stdout

import pytest
import torch

from nas_core.cli import main
from nas_core.errors import DataError
from nas_core.space import get_space
from nas_core.supernet import open_supernet
from tests.fairseq_ext.running import DECODING, USER_DIR, Finished, assert_one_line, passed, run, shell, subnet

FOREIGN = """--arch transformer --encoder-embed-dim 8 --decoder-embed-dim 8 --encoder-ffn-embed-dim 8
    --decoder-ffn-embed-dim 8 --encoder-layers 1 --decoder-layers 1 --encoder-attention-heads 2
    --decoder-attention-heads 2 --optimizer sgd --lr 0.1 --batch-size 8 --cpu --num-workers 0 --max-update 1"""


@pytest.fixture(scope="module")
def broken(trained, corpus, tmp_path_factory):
    """Files that are no checkpoint of ours, by what is wrong with them."""
    folder = tmp_path_factory.mktemp("broken")
    good = trained("neuron").read_bytes()
    (folder / "truncated.pt").write_bytes(good[: len(good) // 2])
    (folder / "text.pt").write_text("no checkpoint\n")
    middle = len(good) // 2
    (folder / "damaged.pt").write_bytes(good[:middle] + b"\0" * 4000 + good[middle + 4000 :])
    torch.save({"weights": torch.zeros(3)}, folder / "other.pt")
    passed("train", corpus, *FOREIGN.split(), "--save-dir", folder / "foreign")
    (folder / "foreign" / "checkpoint_last.pt").rename(folder / "foreign.pt")
    return folder


def nas_ext(*arguments):
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main(list(map(str, arguments)))
    return Finished(code, out.getvalue(), err.getvalue())


def content(folder):
    return {path: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_options_of_training(arguments, corpus, trained, tmp_path):
    (tmp_path / "text.json").write_text("encoder")
    get_space("hat_small").largest().save(tmp_path / "foreign.json")
    supernet, neuron = ["--task", "supernet_translation"], ["--finetune-from-model", trained("neuron")]
    for options, value in [
        (["--fp16"], "--fp16"),
        (["--search-space", "hat_smal"], "hat_small"),
        (["--dropout", 1], "--dropout is 1.0"),
        ([*supernet, "--valid-random", -1], "--valid-random is -1"),
        (["--subnet", tmp_path / "text.json"], "text.json"),
        (["--subnet", tmp_path / "foreign.json"], "qkv_dim"),
        ([*neuron, "--mos-experts", 3], "nas-ext extract"),
        (["--finetune-from-model", tmp_path / "none.pt"], "none.pt"),
        (["--max-source-positions", 1, "--max-target-positions", 1, "--skip-invalid-size-inputs-valid-test"],
         "--max-source-positions"),
        (["--valid-subset", "dev"], "dev"),
    ]:  # fmt: skip
        done = run("train", *arguments, *options, "--max-update", 1, "--save-dir", tmp_path / "c")
        assert_one_line(done, value)
    options = ["--user-dir", USER_DIR, "--task", "supernet_translation", "--save-dir", tmp_path / "c"]
    assert_one_line(run("train", corpus, *FOREIGN.split(), *options), "--task supernet_translation")
    done = run("train", tmp_path / "none", *arguments[1:], "--save-dir", tmp_path / "c")
    assert_one_line(done, "check the folder of the data")


@pytest.mark.parametrize("name", ["truncated", "text", "damaged", "other", "foreign"])
def test_files_that_are_no_checkpoints(arguments, corpus, broken, architecture_file, tmp_path, name):
    before, path = content(broken), broken / f"{name}.pt"
    done = run("train", *arguments, "--restore-file", path, "--max-update", 1, "--save-dir", tmp_path)
    assert_one_line(done, "no weights of a nas-ext network" if name == "foreign" else f"{name}.pt")
    assert content(broken) == before and not list(tmp_path.iterdir())
    if name != "foreign":
        assert_one_line(run("generate", corpus, "--path", path, *DECODING), f"{name}.pt")
    out = tmp_path / "subnet.pt"
    out.write_bytes(b"good")
    done = nas_ext("extract", "--checkpoint", path, "--arch", architecture_file, "--out", out)
    assert_one_line(done, f"{name}.pt")
    assert content(broken) == before and list(tmp_path.iterdir()) == [out] and out.read_bytes() == b"good"


@pytest.mark.parametrize(("task", "split"), [("supernet_translation", "valid")])
def test_splits_without_sentences(arguments, trained, corpus, tmp_path, task, split):
    for side in ("src", "tgt"):
        (tmp_path / f"none.{side}").write_text("")
    dictionaries = ["--srcdict", corpus / "dict.src.txt", "--tgtdict", corpus / "dict.tgt.txt"]
    passed(
        "preprocess", "-s", "src", "-t", "tgt", *dictionaries, f"--{split}pref={tmp_path / 'none'}",
        "--destdir", tmp_path / "bin", "--workers", 1,
    )  # fmt: skip
    for file in corpus.iterdir():
        if not (tmp_path / "bin" / file.name).exists():
            (tmp_path / "bin" / file.name).symlink_to(file)
    options = ["--task", task, "--max-update", 1, "--save-dir", tmp_path / "c"]
    assert_one_line(run("train", tmp_path / "bin", *arguments[1:], *options), split, "empty")
    with pytest.raises(DataError, match="empty"):
        open_supernet(trained("neuron"), data=str(tmp_path / "bin"), valid_subset=split).evaluate(subnet())


def test_extraction_onto_itself_or_of_nothing(trained, architecture_file, tmp_path):
    checkpoint = trained("neuron")
    before = content(checkpoint.parent)
    common = ["extract", "--checkpoint", checkpoint, "--arch"]
    for arguments, part in [
        ([*common, architecture_file, "--out", checkpoint], "is one of the inputs"),
        ([*common, tmp_path / "none.json", "--out", tmp_path / "s.pt"], "none.json"),
        ([*common, architecture_file, "--out", tmp_path / "s.pt", "--data", tmp_path], "fairseq-preprocess"),
    ]:
        assert_one_line(nas_ext(*arguments), part)
    assert content(checkpoint.parent) == before and not list(tmp_path.iterdir())


def test_a_process_ends_with_the_same_line(arguments, broken, tmp_path):
    common = [*arguments, "--max-update", 1, "--save-dir", tmp_path]
    done = shell("fairseq-train", *common, "--restore-file", broken / "truncated.pt")
    assert_one_line(done, "truncated.pt cannot be read")
    assert not list(tmp_path.iterdir())
