"""Written folders, rejected inputs, and files that an interrupted export leaves."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from nas_core.errors import ConfigError, NasExtError, UnknownChoiceError
from nas_core.export import ExportError, write_export
from nas_core.export.folder import check_target
from nas_core.export.parts import Exportable, ExportModule, OpenDim, Value
from nas_core.files.reading import read_json
from nas_core.files.writing import write_json
from nas_core.locks import file_lock


class Scaled(nn.Module):
    """A layer of 800 bytes."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(10, 20, bias=False)

    def forward(self, x: Tensor) -> tuple[Tensor]:
        return (self.inner(x),)


class Unsteady(Scaled):
    """Gives something else each time."""

    calls = 0

    def forward(self, x: Tensor) -> tuple[Tensor]:
        self.calls += 1
        return (self.inner(x) + self.calls,)


class Deciding(Scaled):
    """Looks at values."""

    def forward(self, x: Tensor) -> tuple[Tensor]:
        return (self.inner(x) if float(x.sum()) > 0 else self.inner(-x),)


def model(module: nn.Module | None = None) -> Exportable:
    inputs, outputs = (Value("x", ("batch", 10)),), (Value("y", ("batch", 20)),)
    part = ExportModule("model", (module or Scaled()).eval(), inputs, outputs, (OpenDim("batch"),))
    return Exportable((part,), {"kind": "test"}, {"dict.txt": "one\n"})


@pytest.mark.parametrize(("to", "ending"), [("onnx", "onnx"), ("torch-export", "pt2")])
def test_a_folder_is_written_and_replaced(tmp_path: Path, to: str, ending: str) -> None:
    out = tmp_path / "new" / "out"
    written = write_export(model(), out, to)
    assert sorted(written.files) == sorted(["model.json", f"model.{ending}", "dict.txt"])
    assert written.differences["model"] < 1e-5
    first = (out / f"model.{ending}").read_bytes()
    assert str(Path(__file__).parents[2]).encode() not in first, "no paths of this machine"
    write_export(model(), out, to)
    assert (out / f"model.{ending}").read_bytes() != first
    assert [path.name for path in out.parent.iterdir()] == ["out"]
    content = read_json(out / "model.json")
    assert content["parts"]["model"]["inputs"] == [{"name": "x", "dtype": "float32", "shape": ["batch", 10]}]


def test_a_program_loads_with_any_batch(tmp_path: Path) -> None:
    source = model()
    write_export(source, tmp_path / "out", "torch-export")
    loaded = torch.export.load(tmp_path / "out" / "model.pt2").module()
    for batch in (1, 2, 7):
        x = torch.randn(batch, 10)
        torch.testing.assert_close(loaded(x), source.parts[0].module(x))


@pytest.mark.parametrize(
    ("module", "said"), [(Unsteady(), "has a relative difference of"), (Deciding(), "cannot trace model")]
)
def test_a_wrong_file_is_not_left_behind(tmp_path: Path, module: nn.Module, said: str) -> None:
    for to in ("onnx", "torch-export"):
        with pytest.raises(ExportError, match=said) as caught:
            write_export(model(module), tmp_path / "out", to)
        assert "\n" not in str(caught.value)
    assert not list(tmp_path.iterdir())
    write_export(model(), tmp_path / "out")
    before = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    with pytest.raises(ExportError):
        write_export(model(module), tmp_path / "out")
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == before
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_what_a_killed_export_left_is_removed_and_what_is_of_another_folder_is_not(tmp_path: Path) -> None:
    left, other = tmp_path / ".model.abcd_123.part", tmp_path / ".model.two.abcd_123.part"
    for path in (left, other):
        path.mkdir()
    write_export(model(), tmp_path / "model", "torch-export")
    assert not left.exists() and other.exists()


def test_two_at_once_into_one_folder(tmp_path: Path) -> None:
    with file_lock(tmp_path / ".out.lock", "exports", ""), pytest.raises(ConfigError, match="exports into"):
        write_export(model(), tmp_path / "out", "torch-export")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["keep.txt", "folder.onnx", "link.onnx"])
def test_a_description_that_names_other_files_removes_none(tmp_path: Path, name: str) -> None:
    out, mine = tmp_path / "out", tmp_path / "mine.onnx"
    write_export(model(), out, "torch-export")
    mine.write_text("mine")
    if name == "folder.onnx":
        (out / name).mkdir()
    elif name == "link.onnx":
        (out / name).symlink_to(mine)
    else:
        (out / name).write_text("mine")
    listed = read_json(out / "model.json")
    write_json(out / "model.json", {**listed, "files": [*listed["files"], name, "../mine.onnx"]})
    before = sorted(path.name for path in tmp_path.rglob("*"))
    with pytest.raises(ConfigError, match="contains files that are not part"):
        write_export(model(), out, "torch-export")
    assert sorted(path.name for path in tmp_path.rglob("*")) == before and mine.read_text() == "mine"


@pytest.mark.parametrize(
    ("content", "to", "error", "value"),
    [
        (None, "onnx", ConfigError, "is a file"),
        ('{"format": "other"}', "onnx", ConfigError, "contains files that are not part"),
        ('{"format": "nas-ext/export", "files": 3}', "onnx", ConfigError, "contains files that are not part"),
        ('{"format": "nas-ext/exp', "torch-export", ConfigError, "contains files that are not part"),
        ("3", "onxx", UnknownChoiceError, "'onxx'"),
    ],
)
def test_bad_input(content: str | None, to: str, error: type[NasExtError], value: str, tmp_path: Path) -> None:
    file = tmp_path / "model.json"
    file.write_text(content or "mine")
    with pytest.raises(error) as caught:
        check_target(tmp_path if content else file, to)
    assert value in str(caught.value) and "\n" not in str(caught.value) and file.exists()
