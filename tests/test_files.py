"""Files are whole or not there; journals survive a kill in the middle of a record."""

import errno
import json
import os
import signal
import stat
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

from nas_core import files
from nas_core.errors import DataError, NasExtError
from nas_core.files.journal import append_jsonl, read_jsonl
from nas_core.files.reading import file_digest, read_bytes, read_json, read_yaml
from nas_core.files.writing import write_atomic, write_json


def only_file(folder):
    """The single name in a folder: nothing temporary was left behind."""
    (path,) = folder.iterdir()
    return path.name


def test_rights_are_those_of_a_plain_file_and_are_kept(tmp_path):
    plain, path = tmp_path / "plain", tmp_path / "path"
    plain.write_text("x")
    write_atomic(path, "x")
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE(plain.stat().st_mode)
    path.chmod(0o640)
    write_atomic(path, "y")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_link_keeps_pointing_at_its_file(tmp_path):
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    write_atomic(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new"


def test_full_disk_takes_a_partly_written_record_back(tmp_path, monkeypatch):
    path = tmp_path / "journal.jsonl"
    append_jsonl(path, {"step": 1})
    before = path.read_bytes()
    monkeypatch.setattr(os, "fsync", lambda *_: (_ for _ in ()).throw(OSError(errno.ENOSPC, "No space left on device")))
    with pytest.raises(NasExtError, match="No space left"):
        append_jsonl(path, {"step": 2})
    assert path.read_bytes() == before


@pytest.mark.parametrize("write", [lambda path: write_atomic(path, "x"), lambda path: append_jsonl(path, {})])
def test_folder_or_file_in_the_way(tmp_path, write):
    (tmp_path / "file").write_text("x")
    for path in (tmp_path, tmp_path / "file" / "below"):
        with pytest.raises(NasExtError, match=r"^cannot write "):
            write(path)
    assert (tmp_path / "file").read_text() == "x"


@pytest.mark.parametrize("write", [lambda path: write_atomic(path, "x"), lambda path: append_jsonl(path, {})])
def test_what_is_no_file_is_neither_replaced_nor_read(tmp_path, write):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(DataError, match="is a pipe"):
        write(pipe)
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    for read in (read_bytes, file_digest, read_json, read_jsonl, read_yaml):
        for path in (pipe, tmp_path, tmp_path / "none"):
            if read is not file_digest or path != tmp_path:
                with pytest.raises(DataError):
                    read(path)


def test_the_digest_of_a_folder_is_of_the_names_and_contents_of_its_files(tmp_path):
    (tmp_path / "a").write_text("1")
    digest = file_digest(tmp_path)
    assert file_digest(tmp_path) == digest
    (tmp_path / "a").write_text("2")
    assert (changed := file_digest(tmp_path)) != digest
    (tmp_path / "a").rename(tmp_path / "b")
    assert file_digest(tmp_path) not in (digest, changed)


def test_json_round_trip_with_numpy(tmp_path):
    path = tmp_path / "value.json"
    write_json(path, {"n": np.int64(3), "x": np.arange(3), "text": "ü", "where": Path("a/b"), "bleu": np.float64(0.1)})
    assert read_json(path) == {"n": 3, "x": [0, 1, 2], "text": "ü", "where": "a/b", "bleu": 0.1}
    write_json(path, [1])
    with pytest.raises(TypeError, match="object cannot be written"):
        write_json(path, object())
    assert read_json(path) == [1]


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe{}", b"hello"])
def test_malformed_json(tmp_path, content):
    path = tmp_path / "bad.json"
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"bad\.json is not JSON") as caught:
        read_json(path)
    assert "\n" not in str(caught.value)


def test_every_cut_of_the_last_record_is_survived(tmp_path, caplog):
    """Wherever the writer was killed: reading gives the whole records, and writing goes on after them."""
    path = tmp_path / "journal.jsonl"
    append_jsonl(path, {"step": 1})
    first = path.read_bytes()
    append_jsonl(path, {"step": 2, "text": "ü"})
    full = path.read_bytes()
    for length in range(len(first) + 1, len(full)):
        caplog.clear()
        path.write_bytes(full[:length])
        kept = [{"step": 1}, {"step": 2, "text": "ü"}] if length == len(full) - 1 else [{"step": 1}]
        assert read_jsonl(path) == kept
        assert ("incomplete" in caplog.text) == (len(kept) == 1)
        append_jsonl(path, {"step": 3})
        assert read_jsonl(path) == [*kept, {"step": 3}]


@pytest.mark.parametrize("middle", [b'{"step": ', b"[1]", b"\xff"])
def test_broken_middle_line_is_an_error(tmp_path, middle):
    path = tmp_path / "journal.jsonl"
    path.write_bytes(b'{"step": 1}\n' + middle + b'\n{"step": 3}\n')
    with pytest.raises(
        DataError, match=r"journal\.jsonl, line 2 is not a JSON object .* or move it away to start again$"
    ):
        read_jsonl(path)


def test_foreign_file_is_refused_and_left_alone(tmp_path):
    path = tmp_path / "thesis.txt"
    path.write_text("first line\nlast line without a break")
    with pytest.raises(DataError, match=r"stays unchanged; give another file name$"):
        append_jsonl(path, {"step": 1})
    with pytest.raises(DataError, match="line 1"):
        read_jsonl(path)
    assert path.read_text() == "first line\nlast line without a break"


def test_killed_writer_leaves_whole_files(tmp_path):
    """A process killed at random moments while it writes: the file is always one of its versions, the journal reads."""
    script = textwrap.dedent("""
        import sys
        from nas_core.files.journal import append_jsonl
        from nas_core.files.writing import write_json
        i = 0
        while True:
            write_json(sys.argv[1] + "/state.json", {"i": i, "pad": "x" * 100_000})
            append_jsonl(sys.argv[1] + "/journal.jsonl", {"i": i, "pad": "y" * 10_000})
            if i == 0:
                print("started", flush=True)
            i += 1
    """)
    environment = {**os.environ, "PYTHONPATH": str(Path(files.__file__).parents[2])}
    for _ in range(3):
        process = subprocess.Popen(
            [sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.PIPE, env=environment, text=True
        )
        assert process.stdout.readline() == "started\n"
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.05)
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        assert len(read_json(tmp_path / "state.json")["pad"]) == 100_000
    records = read_jsonl(tmp_path / "journal.jsonl")
    assert [record["i"] for record in records].count(0) == 3
    assert all(json.dumps(record) for record in records)
