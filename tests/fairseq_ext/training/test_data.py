"""Vocabularies of folders of ``fairseq-preprocess``."""

import pytest

from nas_core.errors import DataError
from nas_core.supernet.host import vocabularies


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
    for split in ("train", "valid", "test"):
        for file in folder.glob(f"{split}.*"):
            file.unlink()
    with pytest.raises(DataError):  # no data says which is the source's
        vocabularies(folder)
    (folder / "dict.tgt.txt").write_text((corpus / "dict.src.txt").read_text())
    assert vocabularies(folder) == (sizes[0],) * 2


def test_damaged_dictionaries_and_other_folders(corpus, folder, tmp_path):
    (tmp_path / "other").mkdir()
    for path in (tmp_path / "other", corpus / "dict.src.txt"):
        with pytest.raises(DataError):
            vocabularies(path)
    for content in (b"word", b"word 1\nword 2\n", b"\xff\xfe 1\n"):
        (folder / "dict.tgt.txt").write_bytes(content)
        with pytest.raises(DataError):
            vocabularies(folder)
