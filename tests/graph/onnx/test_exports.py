"""A network that torch exports, against what its layers cost."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from nas_core.graph.onnx import read_onnx

pytest.importorskip("onnxscript", reason="onnxscript is not installed")


pytestmark = pytest.mark.onnx


class Block(nn.Module):
    """An inverted residual with squeeze and excitation, as in MobileNetV3 and EfficientNet."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.up, self.up_norm = nn.Conv2d(width, hidden, 1, bias=False), nn.BatchNorm2d(hidden)
        self.depthwise = nn.Conv2d(hidden, hidden, 3, padding=1, groups=hidden)
        self.squeeze, self.excite = nn.Conv2d(hidden, 4, 1), nn.Conv2d(4, hidden, 1)
        self.down = nn.Conv2d(hidden, width, 1)

    def forward(self, x: Tensor) -> Tensor:
        h = torch.relu(self.up_norm(self.up(x)))
        h = nn.functional.silu(self.depthwise(h))
        scale = self.excite(torch.relu(self.squeeze(h.mean((2, 3), keepdim=True))))
        out: Tensor = self.down(h * torch.sigmoid(scale)) + x
        return out


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, stride=2, padding=1)
        self.blocks = nn.Sequential(Block(8, 24), Block(8, 32))
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
        self.norm, self.head = nn.LayerNorm(8), nn.Linear(8, 10)

    def forward(self, images: Tensor) -> Tensor:
        tokens = self.blocks(self.stem(images)).flatten(2).transpose(1, 2)
        tokens = tokens + self.attention(tokens, tokens, tokens, need_weights=False)[0]
        out: Tensor = self.head(self.norm(tokens).mean(1))
        return out


def counted(network: nn.Module, images: Tensor) -> int:
    """Two for each multiplication of convolutions and linear layers, as hooks see them; attention by its formula."""
    macs = 0

    def hook(module: nn.Module, given: tuple[Tensor, ...], out: Tensor) -> None:
        nonlocal macs
        if isinstance(module, nn.Conv2d):
            macs += out.numel() * module.weight[0].numel()
        elif isinstance(module, nn.Linear):
            macs += out.numel() * module.in_features
        elif isinstance(module, nn.MultiheadAttention):
            batch, steps, width = given[0].shape
            macs += 4 * batch * steps * width * width + 2 * batch * steps * steps * width

    handles = [m.register_forward_hook(hook) for m in network.modules()]
    network(images)
    for handle in handles:
        handle.remove()
    return 2 * macs


def test_an_exported_network_costs_what_its_layers_do(tmp_path: Path) -> None:
    torch.manual_seed(0)
    network, images = Network().train(), torch.randn(2, 3, 32, 32)
    network(images)
    network.eval()
    path = tmp_path / "network.onnx"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            network,
            (images,),
            str(path),
            dynamo=True,
            dynamic_shapes=({0: "batch"},),
            verbose=False,
            external_data=False,
        )
    read = read_onnx(path, batch=2)
    assert not read.unknown
    heavy = ("Conv", "Gemm", "MatMul")
    products = sum(int(f) for f, kind in zip(read.flops, read.operators, strict=True) if kind in heavy)
    expected = counted(network, images)
    assert expected <= products < 1.04 * expected, "biases are counted too"
    assert read.flops_g * 1e9 < 1.25 * products
    params = sum(p.numel() for p in network.parameters()) - 24  # a batch norm of 24 is folded into its convolution
    assert params * 0.97 < read.params_m * 1e6 <= params
    assert read.operators.count("Conv") == 11 and read.operators.count("Softmax") == 1
    assert read_onnx(path, batch=4).flops.sum() == 2 * read.flops.sum()
