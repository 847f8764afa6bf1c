"""What the command line relies on in every host: it knows its files alone, and its supernets evaluate and extract."""

from __future__ import annotations

from pathlib import Path

import pytest

from nas_core.errors import NasExtError
from nas_core.supernet import Host, Supernet, open_supernet
from nas_core.supernet.host import each_host


class HostContract:
    """Derive from it, name the host, and give the fixture ``checkpoint``: the file of a supernet of more than one
    architecture that evaluates in moments."""

    host: str

    @pytest.fixture
    def supernet(self, checkpoint: Path) -> Supernet:
        return open_supernet(checkpoint)

    def test_it_is_found_by_its_entry_point_and_opens_its_checkpoint(
        self, checkpoint: Path, supernet: Supernet
    ) -> None:
        host = dict(each_host())[self.host]
        assert not isinstance(host, NasExtError)
        result: Host = host
        assert result.name == self.host and result.recognises(checkpoint)
        assert isinstance(supernet, Supernet) and supernet.space.cardinality() > 1 and dict(supernet.task)

    def test_other_files_are_not_its_own_and_raise_nothing(self, tmp_path: Path) -> None:
        host = dict(each_host())[self.host]
        assert not isinstance(host, NasExtError)
        for name, content in (("empty", b""), ("text.pt", b"text"), ("zip.pt", b"PK\x03\x04 cut"), ("a.json", b"{}")):
            (tmp_path / name).write_bytes(content)
            assert not host.recognises(tmp_path / name)
        assert not host.recognises(tmp_path / "absent.pt")

    def test_an_architecture_has_one_finite_loss(self, supernet: Supernet) -> None:
        for architecture in (supernet.space.smallest(), supernet.space.largest()):
            metrics = supernet.evaluate(architecture)
            assert metrics == supernet.evaluate(architecture)
            assert abs(metrics["loss"]) < float("inf")

    def test_a_subnet_is_a_file_of_its_own_size(self, supernet: Supernet, tmp_path: Path) -> None:
        sizes = {}
        for name, architecture in (("small", supernet.space.smallest()), ("large", supernet.space.largest())):
            parameters = supernet.extract(architecture, tmp_path / f"{name}.pt")
            written = tmp_path / f"{name}.pt"  # a file, or a folder
            files = written.iterdir() if written.is_dir() else [written]
            sizes[name] = parameters, sum(file.stat().st_size for file in files)
        assert sizes["small"][0] < sizes["large"][0] and sizes["small"][1] < sizes["large"][1]
