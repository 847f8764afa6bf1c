"""What is written, what is refused, and what is left behind."""

from __future__ import annotations

from pathlib import Path

import onnxruntime
import pytest
import torch
from torch import Tensor, nn

from nas_core.errors import ConfigError, UnknownChoiceError
from nas_core.export import Exportable, ExportError, Part, check_out, program, write_export
from nas_core.export.parts import OpenDim, Value
from nas_core.files import read_json, write_json


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
    part = Part("model", (module or Scaled()).eval(), inputs, outputs, (OpenDim("batch"),))
    return Exportable((part,), {"kind": "test"}, {"words.txt": "one\n"})


@pytest.mark.parametrize(("to", "ending"), [("onnx", "onnx"), ("torch-export", "pt2")])
def test_a_folder_is_written_and_replaced(tmp_path: Path, to: str, ending: str) -> None:
    out = tmp_path / "new" / "out"
    written = write_export(model(), out, to)
    assert sorted(written.files) == sorted(["model.json", f"model.{ending}", "words.txt"])
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


def test_large_weights_go_into_a_file_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "LARGEST", 799)
    written = write_export(model(), tmp_path / "out")
    assert "model.onnx.data" in written.files
    data = tmp_path / "out" / "model.onnx.data"
    assert data.stat().st_size >= 800 and "model.onnx.data" in read_json(tmp_path / "out" / "model.json")["files"]
    session = onnxruntime.InferenceSession(str(tmp_path / "out" / "model.onnx"), providers=["CPUExecutionProvider"])
    assert session.run(None, {"x": torch.ones(3, 10).numpy()})[0].shape == (3, 20)
    monkeypatch.setattr(program, "LARGEST", 800)
    write_export(model(), tmp_path / "out")
    assert not data.exists(), "what the earlier export left is gone"


@pytest.mark.parametrize(
    ("module", "said"), [(Unsteady(), "from torch's, relative to its scale"), (Deciding(), "cannot follow model")]
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


def test_folders_of_others_are_not_touched(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(ConfigError, match="is a file; expected a folder"):
        check_out(tmp_path / "file", "onnx")
    with pytest.raises(ConfigError, match="holds other files"):
        check_out(tmp_path, "onnx")
    for content in ({"format": "other"}, {"format": "nas-ext/export", "files": []}, [1]):
        write_json(tmp_path / "model.json", content)
        with pytest.raises(ConfigError, match="holds other files"):
            write_export(model(), tmp_path)
    assert (tmp_path / "file").read_text() == "mine"
    (tmp_path / "empty").mkdir()
    check_out(tmp_path / "empty", "torch-export")
    with pytest.raises(UnknownChoiceError, match="'onxx': expected one of onnx, torch-export"):
        check_out(tmp_path / "empty", "onxx")
