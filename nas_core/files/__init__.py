"""Files that are either whole or not there, and readers that no file can hurt.

Everything this project writes goes through here: a new version is written beside the old one, flushed to the disk and
renamed over it, so that a crash, a full disk or a second run never costs a good file. Journals are JSON Lines that grow
by whole records and survive a process killed in the middle of one. Readers ask what an archive declares before they
unpack it, and refuse in one line what is nested, repeated or long beyond reason.
"""

from nas_core.files.archives import DAMAGED_ARCHIVE, archive_pickle, check_archive, open_npz
from nas_core.files.csv_cells import csv_cell
from nas_core.files.journal import append_jsonl, read_jsonl, repair_jsonl
from nas_core.files.reading import check_regular, file_digest, parse_json, read_bytes, read_json, real_path
from nas_core.files.writing import (
    atomic_output,
    check_replaceable,
    make_folder,
    os_errors,
    plain_json,
    write_atomic,
    write_json,
)
from nas_core.files.yaml_text import MOST_OWN_TEXT, parse_yaml, read_yaml

__all__ = [
    "DAMAGED_ARCHIVE",
    "MOST_OWN_TEXT",
    "append_jsonl",
    "archive_pickle",
    "atomic_output",
    "check_archive",
    "check_regular",
    "check_replaceable",
    "csv_cell",
    "file_digest",
    "make_folder",
    "open_npz",
    "os_errors",
    "parse_json",
    "parse_yaml",
    "plain_json",
    "read_bytes",
    "read_json",
    "read_jsonl",
    "read_yaml",
    "real_path",
    "repair_jsonl",
    "write_atomic",
    "write_json",
]
