"""Vocabularies of folders of ``fairseq-preprocess``."""

import json

import pytest

from nas_core.cli import main
from nas_core.errors import DataError
from nas_core.supernet.host import vocabularies

LENGTHS = ["--workload=source_length=4", "--workload=target_length=3"]


@pytest.fixture
def folder(corpus, tmp_path):
    """The data with a target dictionary of two words less."""
    for file in corpus.iterdir():
        (tmp_path / file.name).symlink_to(file)
    words = (corpus / "dict.tgt.txt").read_text().splitlines(keepends=True)
    (tmp_path / "dict.tgt.txt").unlink()
    (tmp_path / "dict.tgt.txt").write_text("".join(words[:-2]))
    return tmp_path


def test_both_sizes_are_those_of_the_task(pair, corpus, folder):
    sizes = len(pair.source_dictionary), len(pair.target_dictionary)
    assert vocabularies(corpus) == sizes
    assert vocabularies(folder) == (sizes[0], sizes[1] - 2)


def test_dictionaries_alone(corpus, folder, tmp_path):
    for split in ("train", "valid", "test"):
        for file in folder.glob(f"{split}.*"):
            file.unlink()
    with pytest.raises(DataError, match=r"src \(\d+\), tgt \(\d+\).*--workload source_vocab"):
        vocabularies(folder)
    (folder / "dict.tgt.txt").write_text((corpus / "dict.src.txt").read_text())
    assert vocabularies(folder) == (vocabularies(corpus)[0],) * 2


def test_damaged_dictionaries_and_other_folders(corpus, folder, tmp_path):
    for content in (b"word", b"word 1\nword 2\n", b"\xff\xfe 1\n"):
        (folder / "dict.tgt.txt").write_bytes(content)
        with pytest.raises(DataError, match=r"tgt\.txt is no dictionary"):
            vocabularies(folder)
    (tmp_path / "other").mkdir()
    with pytest.raises(DataError, match="no vocabularies"):
        vocabularies(tmp_path / "other")
    with pytest.raises(DataError, match="no folder"):
        vocabularies(corpus / "dict.src.txt")


def test_latency_is_measured_with_them(folder, tmp_path, capsys):
    out = tmp_path / "lat.jsonl"
    command = ["latency", "collect", "--space", "hat_small", "--data", folder, "--out", out, "--samples", 2]
    short = [
        "--workload=source_length=4",
        "--workload=target_length=3",
        "--workload=beam=2",
        "--repeats=1",
        "--warmup=0",
    ]
    assert main([str(word) for word in [*command, *short]]) == 0, capsys.readouterr().err
    workload = json.loads(out.read_text().splitlines()[0])["settings"]["workload"]
    assert (workload["source_vocab"], workload["target_vocab"]) == vocabularies(folder)


def test_a_supernet_gives_the_space_and_the_vocabularies(trained, corpus, tmp_path, capsys):
    out, checkpoint = tmp_path / "lat.jsonl", trained("none")
    short = [
        "--out",
        str(out),
        "--samples=2",
        "--workload=source_length=4",
        "--workload=target_length=3",
        "--repeats=1",
        "--warmup=0",
    ]
    assert main(["latency", "collect", "--checkpoint", str(checkpoint), *short]) == 0, capsys.readouterr().err
    header = json.loads(out.read_text().splitlines()[0])
    workload = header["settings"]["workload"]
    assert (workload["source_vocab"], workload["target_vocab"]) == vocabularies(corpus)
    assert "of tiny in" in capsys.readouterr().out
    for wrong in ([], ["--space", "hat_small", "--checkpoint", str(checkpoint)]):
        assert main(["latency", "collect", *wrong, *short]) == 2
        assert "expected either --space" in capsys.readouterr().err
