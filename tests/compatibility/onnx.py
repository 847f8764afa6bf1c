"""An ONNX file written by torch, read as a graph, run, and its latency predicted."""

import subprocess

import onnxruntime
import torch

from nas_core.graph import read_onnx

net = torch.nn.Sequential(
    torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(8, 10)
)
image = torch.randn(1, 3, 32, 32)
torch.onnx.export(net.eval(), (image,), "net.onnx")
(scores,) = onnxruntime.InferenceSession("net.onnx", providers=["CPUExecutionProvider"]).run(
    None, {onnxruntime.InferenceSession("net.onnx").get_inputs()[0].name: image.numpy()}
)
assert abs(scores - net(image).detach().numpy()).max() < 1e-4
assert read_onnx("net.onnx").graph.ops.size > 3
subprocess.run(["nas-ext", "latency", "predict", "net.onnx"], check=True)
