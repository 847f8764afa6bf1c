"""``nas-ext extract``: wrong input, and what is handed to the host."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nas_core.cli import main
from nas_core.space import Architecture, get_space
from nas_core.supernet import host as module
from tests.toys import ToyHost, ToySupernet

SPACE = get_space("hat_small")


Extract = Callable[..., int]


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> ToyHost:
    toy = ToyHost()
    monkeypatch.setattr(module, "each_host", lambda: iter([("toy", toy)]))
    return toy


@pytest.fixture
def supernet(host: ToyHost) -> ToySupernet:
    return host.supernet


@pytest.fixture
def extract(tmp_path: Path, supernet: ToySupernet) -> Extract:
    (tmp_path / "checkpoint.pt").write_bytes(b"weights")
    (tmp_path / "out.pt").write_text("an older file")

    def call(arch: str, *more: str, checkpoint: str = "checkpoint.pt", out: str = "out.pt") -> int:
        files = ["--checkpoint", str(tmp_path / checkpoint), "--out", str(tmp_path / out)]
        return main(["extract", *files, "--arch", arch, *more])

    return call


@pytest.mark.parametrize("name", ["smallest", "largest"])
def test_named_architectures(
    name: str, extract: Extract, host: ToyHost, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    expected = SPACE.smallest() if name == "smallest" else SPACE.largest()
    assert extract(name, "--data", "elsewhere") == 0
    assert host.supernet.extracted == [expected]
    assert host.options["data"] == "elsewhere"
    assert (tmp_path / "out.pt").read_text() == expected.key
    assert expected.key in capsys.readouterr().out


def test_an_architecture_file_gets_the_fixed_genes(extract: Extract, supernet: ToySupernet, tmp_path: Path) -> None:
    genes = SPACE.smallest().to_dict()
    del genes["qkv_dim"]
    Architecture(genes).save(tmp_path / "a.json", loss=3.0)
    assert extract(str(tmp_path / "a.json")) == 0
    assert supernet.extracted == [SPACE.smallest()]


def foreign(**genes: Any) -> str:
    return json.dumps({"genes": {**SPACE.smallest().to_dict(), **genes}})


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "a.json"),
        ("", "a.json"),
        ("{", "a.json"),
        ("[1, 2]", "is no architecture"),
        ('{"genes": {"encoder.embed_dim": 96}}', "has no gene"),
        (foreign(**{"encoder.embed_dim": 97}), "choose from [128, 96]"),
        (foreign(**{"qkv_dim": 64}), "fixed to 128"),
        (foreign(**{"decoder.ffn_dim": [256, 256]}), "expected 1 options"),
        (foreign(**{"colour": 1}), "has gene 'colour'"),
        ('{"format": "nas-ext/architecture", "version": 99, "genes": {}}', "upgrade nas-ext"),
    ],
)
def test_wrong_architectures(
    content: str | None,
    said: str,
    extract: Extract,
    supernet: ToySupernet,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if content is not None:
        (tmp_path / "a.json").write_text(content)
    assert extract(str(tmp_path / "a.json")) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert said in line
    assert supernet.extracted == []
    assert (tmp_path / "out.pt").read_text() == "an older file"


def test_wrong_checkpoints(extract: Extract, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "other.pt").write_bytes(b"something else")
    for checkpoint, said in (("nowhere.pt", "no file"), ("other.pt", "is not a checkpoint that toy can open")):
        assert extract("largest", checkpoint=checkpoint) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert said in line
        assert (tmp_path / "out.pt").read_text() == "an older file"


def test_the_supernet_is_never_overwritten(
    extract: Extract, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "link.pt").symlink_to(tmp_path / "checkpoint.pt")
    for out in ("checkpoint.pt", "link.pt", "../" + tmp_path.name + "/checkpoint.pt"):
        assert extract("largest", out=out) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert "is one of the inputs" in line
    assert (tmp_path / "checkpoint.pt").read_bytes() == b"weights"


def test_options_are_required(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["extract", "--arch", "largest"]) == 2
    assert "Missing option" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--hugging-face"], "does not hold encoders of text"),
        (["--plain"], "does not have model classes of its own for such networks"),
        (["--plain", "--hugging-face"], "two formats; give one of them"),
    ],
)
def test_formats_that_the_host_does_not_write(
    options: list[str], said: str, extract: Extract, supernet: ToySupernet, capsys: pytest.CaptureFixture[str]
) -> None:
    assert extract("smallest", *options) == 2
    told = capsys.readouterr().err.strip()
    assert said in told and "\n" not in told and supernet.extracted == []
