"""Finding the adapter that opens a checkpoint."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from nas_core.errors import (
    CheckpointError,
    ConfigError,
    DataError,
    MissingHostError,
    UnknownChoiceError,
    UnsupportedError,
)
from nas_core.supernet import host as module
from nas_core.supernet import open_supernet
from nas_core.supernet.host import open_trained
from tests.toys import ToyHost


class Hosts:
    """A registry of these hosts, or of errors that their import raises."""

    def __init__(self, entries: dict[str, object]) -> None:
        self.entries = entries

    def names(self) -> list[str]:
        return list(self.entries)

    def get(self, name: str) -> object:
        if isinstance(self.entries[name], Exception):
            raise self.entries[name]
        return self.entries[name]


Register = Callable[..., None]
NO_FAIRSEQ = MissingHostError("fairseq is absent: pip install 'nas-ext[fairseq]'")


@pytest.fixture
def register(monkeypatch: pytest.MonkeyPatch) -> Register:
    def install(**entries: object) -> None:
        monkeypatch.setattr(module, "ADAPTERS", Hosts(entries))

    return install


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    path = tmp_path / "checkpoint.pt"
    path.write_bytes(b"two: weights")
    return path


def test_the_host_that_recognises_it_opens_it(register: Register, checkpoint: Path) -> None:
    first, two = ToyHost("one", b"one"), ToyHost("two", b"two")
    register(absent=NO_FAIRSEQ, one=first, two=two)
    supernet = open_supernet(str(checkpoint), device="cpu")
    assert supernet is two.supernet
    assert (two.checkpoint, two.options, first.checkpoint) == (checkpoint, {"device": "cpu"}, None)


def test_a_foreign_checkpoint_names_the_usable_hosts(register: Register, checkpoint: Path) -> None:
    register(b=ToyHost("b", b"x"), a=ToyHost("a", b"y"), absent=NO_FAIRSEQ)
    with pytest.raises(CheckpointError, match=r"is not a checkpoint of a \(a file\) or b"):
        open_supernet(checkpoint)


def test_a_missing_file_is_named_before_hosts_are_loaded(register: Register, tmp_path: Path) -> None:
    register(broken=RuntimeError("loaded"))
    with pytest.raises(DataError, match=r"nowhere\.pt does not exist"):
        open_supernet(tmp_path / "nowhere.pt")


def test_what_a_host_leaves_out_is_unsupported(register: Register, tmp_path: Path) -> None:
    toy, path = ToyHost("good", b""), tmp_path / "any"
    register(good=toy)
    path.write_bytes(b"")
    supernet, architecture = toy.supernet, toy.supernet.space.smallest()
    for call in (
        lambda: supernet.extract_plain(architecture, path),
        lambda: supernet.extract_bert(architecture, path),
        lambda: supernet.exportable(architecture),
        lambda: supernet.network,
        lambda: supernet.training_data(),
        lambda: supernet.standalone_command(architecture, path, {}),
        lambda: open_trained(path),
    ):
        with pytest.raises(UnsupportedError):
            call()


def test_sizes_of_each_layer_are_an_option_of_hosts_that_have_it(
    register: Register, checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = ToyHost("two", b"two")
    monkeypatch.setattr(host, "open_trained", lambda path, **options: options, raising=False)
    register(two=host)
    assert open_trained(checkpoint, data="x") == {"data": "x"}
    with pytest.raises(UnsupportedError):
        open_trained(checkpoint, uniform=True)
    host.takes_uniform = True
    assert open_trained(checkpoint, uniform=False) == {"uniform": False}


@pytest.mark.parametrize("precisions", [("fp32",), ("fp32", "bf16")])
def test_precisions_are_those_that_a_host_lists(
    register: Register, checkpoint: Path, precisions: tuple[str, ...]
) -> None:
    host = ToyHost("two", b"two")
    host.precisions = precisions
    register(two=host)
    assert open_supernet(checkpoint, precision="fp32") is host.supernet and host.options == {}
    if "bf16" in precisions:
        assert open_supernet(checkpoint, precision="bf16") is host.supernet and host.options == {"precision": "bf16"}
    else:
        with pytest.raises(ConfigError, match="host 'two' does not support precision bf16"):
            open_supernet(checkpoint, precision="bf16")
    for precision, error in (("tf32", ConfigError), ("fp8", UnknownChoiceError)):
        with pytest.raises(error):
            open_supernet(checkpoint, precision=precision, device="cpu")
