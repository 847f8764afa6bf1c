"""Atomic writers, journals that survive kills, and readers with errors of one line.

All files of this project are written here: a crash, a full disk or a second process never damages an old file.
"""

from nas_core.files.archives import DAMAGED_ARCHIVE, archive_pickle, check_archive, open_npz
from nas_core.files.journal import append_jsonl, read_jsonl, repair_jsonl
from nas_core.files.reading import (
    MOST_OWN_TEXT,
    check_regular,
    file_digest,
    parse_json,
    parse_yaml,
    read_bytes,
    read_json,
    read_yaml,
    real_path,
)
from nas_core.files.writing import (
    atomic_output,
    check_replaceable,
    csv_cell,
    make_folder,
    os_errors,
    plain_json,
    write_atomic,
    write_json,
)

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
