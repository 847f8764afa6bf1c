"""Uniform subnets as timm's own models, loaded where nothing of this project is."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import timm
import torch

from nas_core.cli import main
from nas_core.space import Architecture
from nas_core.space.image import image_space
from tests.timm_ext.trained.tiny import FORMS, images, vit
from timm_ext import elastic, load_model
from timm_ext.checkpoint import save_checkpoint
from timm_ext.host import HOST, ImageSupernet
from timm_ext.model import VisionModel
from timm_ext.trained.reading import read_source
from timm_ext.trained.vit import plain_arguments, plain_state

ALONE = """
import json, sys
import timm, torch
from safetensors import safe_open

images, *paths = sys.argv[1:]
for path in paths:
    if path.endswith(".safetensors"):
        with safe_open(path, "pt") as file:
            about = file.metadata()
        about["model_kwargs"] = json.loads(about["model_kwargs"])
    else:
        about = torch.load(path, weights_only=True)
    model = timm.create_model(about["arch"], checkpoint_path=path, **about["model_kwargs"]).eval()
    assert type(model).__module__ == "timm.models.vision_transformer"
    torch.save(model(torch.load(images)).detach(), path + ".out")
ours = [name for name in sys.modules if name.split(".")[0] in ("timm_ext", "nas_core") and "torchvision" not in name]
assert ours in ([], ["nas_core"]), ours
"""


def small(supernet: VisionModel) -> Architecture:
    """Two layers of half the hidden units, with all channels and heads."""
    largest = supernet.space.largest()
    return Architecture({**largest, "layers": 2, "ffn_dim": (32,) * 2, "heads": (4,) * 2})


@pytest.fixture(scope="module")
def opened(npz: Path, tmp_path_factory: pytest.TempPathFactory) -> ImageSupernet:
    """Layers are in an order of their own."""
    path = tmp_path_factory.mktemp("plain") / "supernet.pt"
    elastic(
        vit(**FORMS["dinov2 with registers"]), importance_by="activation", calibration_batches=1, data=npz, out=path
    )
    return HOST.open_exportable(path)


def test_a_process_without_this_project_loads_it(opened: ImageSupernet, tmp_path: Path) -> None:
    supernet, x = load_model(opened.path), torch.randn(3, 3, 32, 32)
    architecture, paths = small(supernet), [tmp_path / "subnet.pth", tmp_path / "subnet.safetensors"]
    torch.save(x, tmp_path / "images.pt")
    architecture.save(tmp_path / "subnet.json")
    for path in paths:
        arguments = ["--checkpoint", opened.path, "--arch", tmp_path / "subnet.json", "--out", path, "--plain"]
        assert main(["extract", *map(str, arguments)]) == 0
    command = [sys.executable, "-c", ALONE, str(tmp_path / "images.pt"), *map(str, paths)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    with supernet.use_architecture(architecture), torch.no_grad():
        expected = supernet(x)
    for path in paths:
        output = torch.load(f"{path}.out", weights_only=True)
        assert float((output - expected).abs().max() / expected.abs().max()) < 1e-5
        reloaded = read_source(path)
        parameters = opened.extract_plain(architecture, tmp_path / "again.pth")
        assert sum(one.numel() for one in reloaded.model.parameters()) == parameters
        assert reloaded.prepared["mean"] == [0.5, 0.5, 0.5] and HOST.recognises(path)


@pytest.mark.parametrize("form", FORMS)
def test_every_form_goes_back_to_timm(form: str) -> None:
    model = vit(**FORMS[form])
    supernet = elastic(model)
    for architecture in (supernet.space.largest(), small(supernet)):
        name, arguments = plain_arguments(supernet.net, architecture)
        plain = timm.create_model(name, **json.loads(json.dumps(arguments))).eval()
        plain.load_state_dict(plain_state(supernet.net, architecture), strict=True)
        with supernet.use_architecture(architecture), torch.no_grad():
            expected = supernet(images(model))
        assert float((plain(images(model)) - expected).abs().max() / expected.abs().max()) < 1e-5


def test_a_network_trained_here_from_the_start_too(tmp_path: Path) -> None:
    """Its embedding has a factor, which timm's has not."""
    space = image_space("uniform", layers=(1, 2), embed_dims=(24,), ffn_dims=(30, 50), heads=(3,), head_dim=8,
                        image_size=16, patch_size=4, relative_clip=0)  # fmt: skip
    model = VisionModel(space, num_classes=3, norm_embedding=True).eval()
    save_checkpoint(tmp_path / "supernet.pt", model, arch="mos_vit_cifar10_small_supernet")
    for architecture in (space.smallest(), space.largest()):
        HOST.open_exportable(tmp_path / "supernet.pt").extract_plain(architecture, tmp_path / "plain.safetensors")
        with model.use_architecture(architecture), torch.no_grad():
            expected = model(torch.ones(1, 3, 16, 16))
        output = read_source(tmp_path / "plain.safetensors").model(torch.ones(1, 3, 16, 16))
        torch.testing.assert_close(output, expected, atol=1e-5, rtol=1e-5)
