"""``nas-ext extract``: wrong input, and what is handed to the host."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

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
