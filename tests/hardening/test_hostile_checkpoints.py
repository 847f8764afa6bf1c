"""Nothing in a checkpoint runs, and damaged weights are rejected."""

from __future__ import annotations

import argparse
import json
import os
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
    path, marker = tmp_path / "hostile.pt", tmp_path / "made"
    torch.save({**SIGNS, "extra": Hostile(marker)}, path, _use_new_zipfile_serialization=zipped)
    content = path.read_bytes()
    for read in readers():
        with pytest.raises(CheckpointError, match="cannot be read as a checkpoint"):
            read(path)
        assert not marker.exists()
    assert path.read_bytes() == content


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("vit_tiny_patch16_224", {"pretrained": True, "pretrained_cfg": {"url": "http://localhost/w"}}, "'pretrained'"),
        ("vit_tiny_patch16_224", {"pretrained_cfg": {"url": "http://localhost/w"}}, "'pretrained_cfg'"),
        ("vit_tiny_patch16_224", {"checkpoint_path": "/etc/passwd"}, "'checkpoint_path'"),
        (
            "mformer_cifar10_small_supernet",
            {"pretrained_cfg_overlay": {"file": "/etc/passwd"}},
            "'pretrained_cfg_overlay'",
        ),
        ("elastic_vit", {"elastic": "other.pt"}, "'elastic'"),
        ("hf-hub:timm/vit_tiny_patch16_224", {}, "which timm does not have"),
        ("local-dir:/tmp/vit_tiny_patch16_224", {}, "which timm does not have"),
    ],
)
@pytest.mark.parametrize("read", ["supernet", "trained", "config.json"])
def test_a_file_does_not_say_what_timm_reads(
    name: str, arguments: dict[str, Any], message: str, read: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    timm = pytest.importorskip("timm")
    checkpoint, reading = (pytest.importorskip(f"timm_ext.{module}") for module in ("checkpoint", "trained.reading"))

    def reached(*_: Any, **__: Any) -> None:
        raise AssertionError("such arguments reach timm")

    monkeypatch.setattr(timm, "create_model", reached)
    monkeypatch.setattr("socket.socket.connect", reached)
    weights, path = {"net.patch_embed.weight": torch.ones(1)}, tmp_path / "weights.pt"
    options = argparse.Namespace(model=name, model_kwargs=arguments)
    torch.save(weights if read == "config.json" else {"state_dict": weights, "args": options, "arch": name}, path)
    (tmp_path / "config.json").write_text(json.dumps({"architecture": name, "model_args": arguments}))
    with pytest.raises(CheckpointError, match=message):
        checkpoint.read_checkpoint(path) if read == "supernet" else reading.read_source(path, elastic=False)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("${oc.env:SECRET}", r"\$\{oc\.env:SECRET\}"),
        ([{"a": ("b${oc.env:SECRET}",)}], "expected values without interpolation"),
    ],
)
@pytest.mark.parametrize("where", ["args", "cfg"])
def test_settings_that_ask_for_the_environment(
    value: Any, message: str, where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint = pytest.importorskip("fairseq_ext.checkpoint")
    monkeypatch.setenv("SECRET", "a password")
    path = tmp_path / "c.pt"
    settings = {"args": argparse.Namespace(data=value), "cfg": None} if where == "args" else {"cfg": {"t": value}}
    torch.save({**SIGNS, **settings}, path)
    for mmap in (False, True):
        with pytest.raises(CheckpointError, match=message) as raised:
            checkpoint.read_state(path, mmap=mmap)
        assert "a password" not in str(raised.value)


def flipped(path: Path) -> None:
    """Flip a bit in the last record of a tensor."""
    with zipfile.ZipFile(path) as archive:
        record = next(each for each in archive.infolist() if "/data/" in each.filename and each.file_size)
        content = archive.read(record)
    full = bytearray(path.read_bytes())
    full[full.index(content, record.header_offset)] ^= 1
    path.write_bytes(full)


@pytest.mark.parametrize("fault", ["a flipped bit", "NaN"])
def test_damaged_weights_are_rejected_by_each_host(fault: str, tmp_path: Path) -> None:
    """torch reads both without a word."""
    timm, fairseq = pytest.importorskip("timm_ext.checkpoint"), pytest.importorskip("fairseq_ext.checkpoint")
    path, weight = tmp_path / "c.pt", torch.arange(1000.0)
    if fault == "NaN":
        weight[7] = float("nan")
    torch.save({**SIGNS, "model": {"weight": weight}, "state_dict": {"weight": weight}}, path)
    if fault == "a flipped bit":
        flipped(path)
    message = "does not match its checksum" if fault == "a flipped bit" else "has NaN or infinite values in weight"
    reads: list[Callable[[], object]] = [
        lambda: timm.load_weights(torch.nn.Linear(1, 1), timm.read_file(path)[0], path),
        lambda: pytest.importorskip("timm_ext.trained.reading").read_source(path),
        lambda: fairseq.load_network(path, fairseq.read_state(path, mmap=True), str(tmp_path)),
    ]
    for read in reads:
        with pytest.raises(CheckpointError, match=message):
            read()


def test_fairseq_does_not_go_on_with_damaged_weights(tmp_path: Path) -> None:
    compat = pytest.importorskip("fairseq_ext.compat")
    compat.prepare_fairseq()
    from fairseq import checkpoint_utils

    torch.save({**SIGNS, "model": {"weight": torch.arange(1000.0)}}, tmp_path / "checkpoint_last.pt")
    flipped(tmp_path / "checkpoint_last.pt")
    with pytest.raises(ValueError, match="does not match its checksum") as caught:
        checkpoint_utils.load_checkpoint_to_cpu(str(tmp_path / "checkpoint_last.pt"))
    assert "cannot be read as a checkpoint" in compat.wrong_input(caught.value)
