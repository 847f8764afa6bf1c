"""ONNX and ``torch.export`` of image models."""

from __future__ import annotations

from pathlib import Path

import pytest
import timm
import torch

from nas_core.cli import main
from nas_core.files.reading import read_json
from nas_core.graph.onnx.reader import read_onnx
from nas_core.space import Architecture
from tests.timm_ext.running import SPACE, space_file
from timm_ext.checkpoint import load_model, save_checkpoint, write_subnet

onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
pytest.importorskip("onnxscript", reason="onnxscript is not installed")
pytestmark = pytest.mark.onnx


@pytest.fixture(scope="module")
def supernet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("supernet")
    torch.manual_seed(0)
    options = {"search_space": str(space_file(folder)), "mos": "neuron"}
    model = timm.create_model("mformer_cifar10_small_supernet", num_classes=3, **options)
    save_checkpoint(folder / "supernet.pt", model, arch="mformer_cifar10_small_supernet", epoch=0)
    return folder / "supernet.pt"


def mixed() -> Architecture:
    return Architecture({**SPACE.largest(), "attention": ("softmax", "linear")})


def test_an_extracted_subnet_runs_in_onnxruntime(supernet: Path, tmp_path: Path) -> None:
    checkpoint, out = tmp_path / "subnet.safetensors", tmp_path / "out"
    write_subnet(load_model(supernet), mixed(), str(checkpoint))
    assert main(["export", "--checkpoint", str(checkpoint), "--out", str(out)]) == 0
    described = read_json(out / "model.json")
    assert (described["kind"], described["classes"], described["height"]) == ("image", 3, 32)
    assert described["architecture"] == mixed().to_dict() and len(described["mean"]) == 3
    session = onnxruntime.InferenceSession(str(out / "model.onnx"), providers=["CPUExecutionProvider"])
    model = load_model(supernet)
    for batch in (1, 5):
        images = torch.randn(batch, 3, 32, 32)
        with torch.no_grad(), model.use_architecture(mixed()):
            expected = model(images)
        (got,) = session.run(None, {"images": images.numpy()})
        torch.testing.assert_close(torch.from_numpy(got), expected, atol=1e-4, rtol=1e-4)
    assert not read_onnx(out / "model.onnx", shapes={"batch": 2}).unknown


def test_a_subnet_of_a_supernet_as_a_program(supernet: Path, tmp_path: Path) -> None:
    options = ["--arch", "smallest", "--to", "torch-export", "--out", str(tmp_path / "out")]
    assert main(["export", "--checkpoint", str(supernet), *options]) == 0
    loaded, model = torch.export.load(tmp_path / "out" / "model.pt2").module(), load_model(supernet)
    images = torch.randn(3, 3, 32, 32)
    with torch.no_grad(), model.use_architecture(SPACE.smallest()):
        torch.testing.assert_close(loaded(images)[0], model(images), atol=1e-5, rtol=1e-4)
