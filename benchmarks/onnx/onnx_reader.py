"""Speed of reading ONNX models as graphs, relative to parsing and shape inference by onnx.

``python -m benchmarks onnx_reader``. Networks without weights have about 200 nodes each: inverted residuals as in
MobileNetV3, a residual network, and transformer blocks as exported by torch. Measurements alternate. A network of 8,000
nodes is measured too.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.shape_inference
from onnx import helper, numpy_helper

from benchmarks.parts.record import command, write_result
from benchmarks.parts.turns import taking_turns
from nas_core.graph.onnx.reader import read_onnx
from nas_core.latency.machine import describe_machine

RESULT = Path(__file__).parents[1] / "results" / "onnx_reader.json"
AIM = 50.0
"""Aim: graphs per second, for graphs of 200 nodes."""


class Builder:
    """Builder of a sequential ONNX network; weights have shapes but no values."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.nodes: list[Any] = []
        self.weights: list[Any] = []
        self.inputs = [helper.make_tensor_value_info("x", 1, shape)]

    def weight(self, *shape: int) -> str:
        name = f"w{len(self.inputs)}"
        self.inputs.append(helper.make_tensor_value_info(name, 1, shape))
        return name

    def constant(self, *values: int) -> str:
        name = f"c{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.array(values, np.int64), name))
        return name

    def add(self, kind: str, *inputs: str, **settings: Any) -> str:
        name = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [name], **settings))
        return name

    def conv(self, x: str, into: int, out: int, kernel: int = 1, stride: int = 1, group: int = 1) -> str:
        settings = {"kernel_shape": [kernel] * 2, "strides": [stride] * 2, "pads": [kernel // 2] * 4, "group": group}
        return self.add("Conv", x, self.weight(out, into // group, kernel, kernel), self.weight(out), **settings)

    def model(self) -> onnx.ModelProto:
        output = [helper.make_tensor_value_info(self.nodes[-1].output[0], 1, None)]
        graph = helper.make_graph(self.nodes, "benchmark", self.inputs, output, self.weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def inverted_residuals(blocks: int) -> onnx.ModelProto:
    b = Builder((1, 3, 224, 224))
    x = b.add("HardSwish", b.conv("x", 3, 32, 3, 2))
    for _ in range(blocks):
        h = b.add("HardSwish", b.conv(x, 32, 128))
        h = b.add("HardSwish", b.conv(h, 128, 128, 5, 1, 128))
        s = b.conv(b.add("GlobalAveragePool", h), 128, 32)
        s = b.add("HardSigmoid", b.conv(b.add("Relu", s), 32, 128))
        x = b.add("Add", b.conv(b.add("Mul", h, s), 128, 32), x)
    return b.model()


def residuals(blocks: int) -> onnx.ModelProto:
    b = Builder((1, 3, 224, 224))
    x = b.conv("x", 3, 64, 7, 4)
    for _ in range(blocks):
        h = b.add("Relu", b.conv(x, 64, 64, 3))
        x = b.add("Relu", b.add("Add", b.conv(h, 64, 64, 3), x))
    return b.model()


def transformers(blocks: int, width: int = 192, steps: int = 196, heads: int = 3) -> onnx.ModelProto:
    b = Builder((1, steps, width))
    x = "x"

    def linear(x: str, into: int, out: int) -> str:
        return b.add("Add", b.add("MatMul", x, b.weight(into, out)), b.weight(out))

    for _ in range(blocks):
        h = b.add("LayerNormalization", x, b.weight(width), b.weight(width))
        parts = []
        for _ in "qkv":
            split = b.add("Reshape", linear(h, width, width), b.constant(1, steps, heads, width // heads))
            parts.append(b.add("Transpose", split, perm=[0, 2, 1, 3]))
        scores = b.add("Softmax", b.add("MatMul", parts[0], b.add("Transpose", parts[1], perm=[0, 1, 3, 2])))
        joined = b.add("Transpose", b.add("MatMul", scores, parts[2]), perm=[0, 2, 1, 3])
        x = b.add("Add", linear(b.add("Reshape", joined, b.constant(1, steps, width)), width, width), x)
        h = b.add("LayerNormalization", x, b.weight(width), b.weight(width))
        h = linear(b.add("Gelu", linear(h, width, 4 * width)), 4 * width, width)
        x = b.add("Add", h, x)
    return b.model()


def seconds(run: Any, repeats: int = 3) -> float:
    durations = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        durations.append(time.perf_counter() - start)
    return round(min(durations), 4)


def measure(repeats: int = 30) -> dict[str, Any]:
    models = [inverted_residuals(17), residuals(39), transformers(5)]
    files = [model.SerializeToString() for model in models]
    nodes = [len(read_onnx(file).graph) for file in files]
    runs = {
        "ours": lambda: [read_onnx(file) for file in files],
        "onnx_load": lambda: [onnx.load_model_from_string(file) for file in files],
        "onnx_infer_shapes": lambda: [onnx.shape_inference.infer_shapes(model) for model in models],
    }
    turns = taking_turns(runs, repeats, "onnx_reader")
    rates = {key: round(1000 * len(files) / ms["median"], 1) for key, ms in turns["ms"].items()}
    long = transformers(200).SerializeToString()
    return {
        "nodes": nodes,
        "nodes_mean": round(float(np.mean(nodes)), 1),
        "graphs_per_s": rates,
        **turns,
        "many_nodes": {"nodes": len(read_onnx(long).graph), "seconds": seconds(lambda: read_onnx(long))},
        "aim_graphs_per_s": AIM,
        "reached": rates["ours"] >= AIM,
        "machine": {**describe_machine("cpu", 1), "python": platform.python_version(), "onnx": onnx.__version__},
    }


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=RESULT, help="where the JSON goes")
    parser.add_argument("--repeats", type=int, default=30, help="rounds; medians are reported")
    arguments = parser.parse_args(argv)
    result = measure(arguments.repeats)
    write_result(arguments.out, result, command(__file__, argv))
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
