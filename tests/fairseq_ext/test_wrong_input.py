"""One line that says what is wrong, an exit code, and no file lost: for fairseq's commands and for ours."""

import hashlib
import io
from contextlib import redirect_stderr, redirect_stdout

import pytest
import torch

from nas_core.cli import main
from nas_core.errors import DataError
from nas_core.space import Architecture, get_space
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
    (folder / "empty.pt").write_bytes(b"")
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


def test_options_of_training(arguments, corpus, trained, architecture_file, tmp_path):
    (tmp_path / "bad.yml").write_text("choices: [")
    (tmp_path / "poor.yml").write_text("choices: {width: [1, 2]}")
    (tmp_path / "text.json").write_text("encoder")
    (tmp_path / "other.json").write_text('{"encoder": 1}')
    get_space("hat_small").largest().save(tmp_path / "foreign.json")
    Architecture({**subnet(), "decoder.layers": 2, "decoder.ffn_dim": [16]}).save(tmp_path / "short.json")
    supernet, neuron = ["--task", "supernet_translation"], ["--finetune-from-model", trained("neuron")]
    for options, *parts in [
        (["--fp16"], "--fp16 needs a CUDA device", "fp32"),
        (["--search-space", "hat_smal"], "'hat_smal'", "Did you mean 'hat_small'"),
        (["--search-space", tmp_path / "none.yml"], "no file", "none.yml"),
        (["--search-space", tmp_path / "bad.yml"], "not readable as YAML"),
        (["--search-space", tmp_path / "poor.yml"], "no gene"),
        (["--dropout", 1], "--dropout is 1.0; expected a number from 0 to below 1"),
        (["--max-source-positions", 0], "--max-source-positions is 0; expected a whole number from 1 on"),
        ([*supernet, "--valid-random", -1], "--valid-random is -1; expected a whole number from 0 on"),
        ([*supernet, "--stability-architectures", 5, "--stability-tau", 1.5], "above 0 and up to 1"),
        ([*supernet, "--mos", "none", "--mos-apart", 1], "no layers of several experts"),
        ([*supernet, "--mos-apart", -1], "--mos-apart is -1.0; expected a weight above 0"),
        (["--mos-rank", 999], "experts of rank 999"),
        (["--mos-rank", 2, "--mos-experts", 1], "rank 2 of the differences of 1 experts"),
        (["--subnet", tmp_path / "none.json"], "not found"),
        (["--subnet", tmp_path / "text.json"], "is not JSON"),
        (["--subnet", tmp_path / "other.json"], "is no architecture"),
        (["--subnet", tmp_path / "foreign.json"], "qkv_dim"),
        (["--subnet", tmp_path / "short.json"], "decoder.ffn_dim"),
        ([*neuron, "--subnet", architecture_file], "does not fit", "nas-ext extract"),
        ([*neuron, "--mos", "layer"], "does not fit", "nas-ext extract"),
        ([*neuron, "--mos-experts", 3], "does not fit", "nas-ext extract"),
        (["--finetune-from-model", tmp_path / "none.pt"], "none.pt does not exist"),
        (["--max-source-positions", 1, "--max-target-positions", 1, "--skip-invalid-size-inputs-valid-test"],
         "--max-source-positions"),
        (["--valid-subset", "dev"], "dev"),
    ]:  # fmt: skip
        done = run("train", *arguments, *options, "--max-update", 1, "--save-dir", tmp_path / "c")
        assert_one_line(done, *parts)
    options = ["--user-dir", USER_DIR, "--task", "supernet_translation", "--save-dir", tmp_path / "c"]
    assert_one_line(run("train", corpus, *FOREIGN.split(), *options), "--task supernet_translation", "mos_transformer")
    for named in ([], ["--source-lang", "src", "--target-lang", "tgt"]):
        done = run("train", tmp_path / "none", *arguments[1:], *named, "--save-dir", tmp_path / "c")
        assert_one_line(done, "check the folder of the data")


@pytest.mark.parametrize("name", ["truncated", "text", "empty", "damaged", "other", "foreign"])
def test_files_that_are_no_checkpoints(arguments, corpus, broken, architecture_file, tmp_path, name):
    before, path = content(broken), broken / f"{name}.pt"
    done = run("train", *arguments, "--restore-file", path, "--max-update", 1, "--save-dir", tmp_path)
    assert_one_line(done, "another kind of model" if name == "foreign" else f"{name}.pt")
    assert content(broken) == before and not list(tmp_path.iterdir())
    if name != "foreign":
        assert_one_line(run("generate", corpus, "--path", path, *DECODING), f"{name}.pt")
    out = tmp_path / "subnet.pt"
    out.write_bytes(b"good")
    done = nas_ext("extract", "--checkpoint", path, "--arch", architecture_file, "--out", out)
    assert_one_line(done, f"{name}.pt")
    assert content(broken) == before and list(tmp_path.iterdir()) == [out] and out.read_bytes() == b"good"


def test_a_truncated_last_checkpoint_is_left_as_it_is(arguments, broken, tmp_path):
    last = tmp_path / "checkpoint_last.pt"
    last.write_bytes((broken / "truncated.pt").read_bytes())
    before = content(tmp_path)
    assert_one_line(run("train", *arguments, "--max-update", 1, "--save-dir", tmp_path), "checkpoint_last.pt")
    assert content(tmp_path) == before


@pytest.mark.parametrize(("task", "split"), [("translation", "train"), ("supernet_translation", "valid")])
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
        open_supernet(trained("none"), data=str(tmp_path / "bin"), valid_subset=split).evaluate(subnet())


def test_extraction_onto_itself_or_of_nothing(trained, architecture_file, tmp_path):
    checkpoint = trained("none")
    before = content(checkpoint.parent)
    link = tmp_path / "link.pt"
    link.symlink_to(checkpoint)
    get_space("hat_small").largest().save(tmp_path / "foreign.json")
    common = ["extract", "--checkpoint", checkpoint, "--arch"]
    for arguments, part in [
        ([*common, architecture_file, "--out", checkpoint], "is one of the inputs"),
        ([*common, architecture_file, "--out", link], "is one of the inputs"),
        ([*common, tmp_path / "foreign.json", "--out", tmp_path / "foreign.json"], "is one of the inputs"),
        ([*common, architecture_file, "--out", tmp_path], str(tmp_path)),
        ([*common, tmp_path / "none.json", "--out", tmp_path / "s.pt"], "none.json"),
        ([*common, tmp_path / "foreign.json", "--out", tmp_path / "s.pt"], "qkv_dim"),
        ([*common, architecture_file, "--out", tmp_path / "s.pt", "--data", tmp_path / "none"], "no data folder"),
        ([*common, architecture_file, "--out", tmp_path / "s.pt", "--data", tmp_path], "fairseq-preprocess"),
    ]:
        assert_one_line(nas_ext(*arguments), part)
    assert content(checkpoint.parent) == before
    assert {path.name for path in tmp_path.iterdir()} == {"link.pt", "foreign.json"}


def test_a_process_ends_with_the_same_line(arguments, broken, tmp_path):
    common = [*arguments, "--max-update", 1, "--save-dir", tmp_path]
    done = shell("fairseq-train", *common, "--restore-file", broken / "truncated.pt")
    assert_one_line(done, "truncated.pt cannot be read")
    assert not list(tmp_path.iterdir())
