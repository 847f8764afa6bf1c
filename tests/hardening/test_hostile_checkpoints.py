"""Nothing in a checkpoint runs, and what it declares is compared with what it can hold before it is unpacked."""

from __future__ import annotations

import argparse
import io
import os
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from nas_core.errors import CheckpointError

SIGNS = {"cfg": {}, "args": None, "optimizer_history": [], "model": {}, "state_dict": {"net.patch_embed.weight": 1}}
"""By which both hosts know a file"""


class Hostile:
    """Makes a folder when it is unpickled."""

    def __init__(self, folder: Path) -> None:
        self.folder = str(folder)

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[str]]:
        return os.mkdir, (self.folder,)


def readers() -> list[Callable[[Path], object]]:
    fairseq, timm = pytest.importorskip("fairseq_ext.checkpoint"), pytest.importorskip("timm_ext.checkpoint")
    inherit, trained = pytest.importorskip("timm_ext.host"), pytest.importorskip("fairseq_ext.host")
    return [
        fairseq.read_state, lambda path: fairseq.read_state(path, mmap=True), timm.read_checkpoint, timm.load_model,
        inherit.HOST.open, trained.HOST.open,
    ]  # fmt: skip


@pytest.mark.parametrize("zipped", [True, False])
def test_nothing_in_a_checkpoint_runs(zipped: bool, tmp_path: Path) -> None:
    path, made = tmp_path / "hostile.pt", tmp_path / "made"
    torch.save({**SIGNS, "extra": Hostile(made)}, path, _use_new_zipfile_serialization=zipped)
    content = path.read_bytes()
    for read in readers():
        with pytest.raises(CheckpointError, match="cannot be read as a checkpoint"):
            read(path)
        assert not made.exists()
    assert path.read_bytes() == content


@pytest.mark.parametrize("record", ["archive/data.pkl", "archive/data/0"])
def test_records_that_unpack_to_far_more_than_the_file(record: str, tmp_path: Path) -> None:
    """160 MB of zeros in less than one."""
    path, buffer = tmp_path / "bomb.pt", io.BytesIO()
    torch.save({**SIGNS, "weight": torch.zeros(3)}, buffer)
    with zipfile.ZipFile(buffer) as whole, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as bomb:
        for name in {*whole.namelist(), record}:
            with bomb.open(name, "w") as file:
                for _ in range(10 if name == record else 0):
                    file.write(bytes(2**24))
                file.write(whole.read(name) if name in whole.namelist() else b"")
    assert path.stat().st_size < 2**20
    for host in ("fairseq_ext.host", "timm_ext.host"):
        pytest.importorskip(host).HOST.recognises(path)
    for read in readers():
        with pytest.raises(CheckpointError, match=r"its records declare \d+ bytes"):
            read(path)


@pytest.mark.parametrize("fault", ["encrypted", "unknown method", "pipe", "cut"])
def test_hosts_recognise_no_odd_archive_and_raise_nothing(fault: str, tmp_path: Path) -> None:
    path = tmp_path / "odd.pt"
    torch.save(SIGNS, path)
    content = bytearray(path.read_bytes())
    central = content.rindex(b"PK\x01\x02")
    first = content.index(b"PK\x01\x02")
    for entry in (first, central):
        content[entry + (8 if fault == "encrypted" else 10)] ^= 1 if fault == "encrypted" else 77
    if fault == "pipe":
        path.unlink()
        os.mkfifo(path)
    else:
        path.write_bytes(content[:central] if fault == "cut" else content)
    for host in ("fairseq_ext.host", "timm_ext.host"):
        assert not pytest.importorskip(host).HOST.recognises(path)


def in_itself() -> list[Any]:
    found: list[Any] = []
    found.append(found)
    return found


def nested(parts: int, levels: int) -> list[Any]:
    found: list[Any] = [0]
    for _ in range(levels):
        found = [found] * parts
    return found


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("${oc.env:SECRET}", r"\$\{oc\.env:SECRET\}"),
        ([{"a": ("b${oc.env:SECRET}",)}], "expected plain values"),
        (in_itself(), "in itself"),
        (nested(1, 5_000), "levels deep"),
        (nested(10, 19), "more than 100000 settings"),
    ],
    ids=["asks", "asks inside", "in itself", "deep", "shared"],
)
@pytest.mark.parametrize("where", ["args", "cfg"])
def test_settings_that_ask_or_grow(
    value: Any, message: str, where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint = pytest.importorskip("fairseq_ext.checkpoint")
    monkeypatch.setenv("SECRET", "a password")
    path = tmp_path / "c.pt"
    settings = {"args": argparse.Namespace(data=value), "cfg": None} if where == "args" else {"cfg": {"t": value}}
    previous = sys.getrecursionlimit()
    sys.setrecursionlimit(50_000)  # to write it
    try:
        torch.save({**SIGNS, **settings}, path)
    finally:
        sys.setrecursionlimit(previous)
    for mmap in (False, True):
        with pytest.raises(CheckpointError, match=message) as raised:
            checkpoint.read_state(path, mmap=mmap)
        assert "a password" not in str(raised.value)
