"""Exported encoders and decoding steps, run by onnxruntime, against the supernet they come from."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from examples.export.greedy_onnx import Translator
from nas_core.cli import main
from nas_core.files.reading import read_json
from nas_core.graph.onnx.reader import read_onnx
from tests.export.tiny import EOS, LIMIT, MODELS, greedy, network, sources
from tests.models.translation.tiny import sentences
from tests.toys import ROOT

onnx, onnxruntime, _ = (
    pytest.importorskip(name, reason=f"{name} is not installed") for name in ("onnx", "onnxruntime", "onnxscript")
)
pytestmark = pytest.mark.onnx
every_model = pytest.mark.parametrize("name", MODELS)
Exported = Callable[[str], Path]
EXAMPLE = ROOT / "examples" / "export" / "greedy_onnx.py"
ALONE = """
import runpy, sys
for name in ("torch", "nas_core", "fairseq_ext", "timm_ext", "fairseq", "onnx", "onnxscript"):
    sys.modules[name] = None
example = sys.argv[1]
sys.argv = sys.argv[1:]
runpy.run_path(example, run_name="__main__")
"""


@every_model
def test_forced_decoding_gives_the_full_forward_of_the_supernet(exported: Exported, name: str) -> None:
    net, architecture = network(name)
    translator = Translator(exported(name))
    source, target = sentences(5, 9, 2, left=True), sentences(7, 7, 7, seed=1)
    with torch.no_grad():
        expected = torch.log_softmax(net(net.select(architecture), source, target), -1)
    (session, memory) = translator.encoder, translator.model["memory"]
    read = dict(zip(memory, session.run(None, {"tokens": source.numpy()}), strict=True))
    caches = translator.start(3)
    for position in range(target.shape[1]):
        settings = {"token": target[:, position].numpy(), "position": np.array(position), **read, **caches}
        out = dict(zip(translator.outputs, translator.decoder.run(None, settings), strict=True))
        np.testing.assert_allclose(out["log_probs"], expected[:, position], atol=1e-4)
        caches = {cache["input"]: out[cache["output"]] for cache in translator.model["caches"]}


@every_model
def test_greedy_translations_are_the_supernets(exported: Exported, name: str) -> None:
    net, architecture = network(name)
    sentences = sources(1, 4, 9, 2, 11, 5, 3, 8)
    result = Translator(exported(name)).greedy(sentences, LIMIT)
    assert result == [greedy(net, architecture, sentence, LIMIT) for sentence in sentences]
    assert len({tuple(tokens) for tokens in result}) > 2, "the comparison should see different translations"


@every_model
def test_every_operator_is_known_to_the_graph_reader(exported: Exported, name: str) -> None:
    sizes = {"batch": 2, "source": 5, "source_x2": 10, "past": 3}
    for part in ("encoder", "decoder_step"):
        path = exported(name) / f"{part}.onnx"
        used = {
            dim for value in read_json(path.parent / "model.json")["parts"][part]["inputs"] for dim in value["shape"]
        }
        read = read_onnx(path, shapes={dim: sizes[dim] for dim in used if isinstance(dim, str)})
        assert not read.unknown
        assert read.flops_g > 0


def test_an_exported_decoding_step_is_predicted(
    exported: Exported, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = exported("softmax")
    step = str(folder / "decoder_step.onnx")
    assert main(["latency", "predict", step, str(folder / "encoder.onnx")]) == 0
    out, err = capsys.readouterr()
    assert out.count(".onnx") == 2
    assert f"decoder_step.onnx: batch=1, past={LIMIT - 1}, source={LIMIT}, source_x2={2 * LIMIT}, within" in err
    alone = shutil.copy(step, tmp_path)
    assert main(["latency", "predict", str(alone)]) == 2
    err = capsys.readouterr().err
    assert "has no size; give --shapes token=1, with your sizes, or --batch 1" in err and "shapes={" not in err


def test_the_decoder_that_users_copy_runs_without_this_project_and_torch(exported: Exported, tmp_path: Path) -> None:
    net, architecture = network("mixed")
    lines = ["s3 s4 s9", "s0", "s5 s5 s11 strange s2"]
    for options in ([], ["--beam", "3"]):
        done = subprocess.run(
            [sys.executable, "-I", "-c", ALONE, str(EXAMPLE), str(exported("mixed")), *options],
            input="\n".join(lines) + "\n",
            capture_output=True,
            text=True,
            cwd=tmp_path,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        result = done.stdout.splitlines()
        assert len(result) == len(lines)
        if not options:
            for line, text in zip(lines, result, strict=True):
                tokens = [int(word[1:]) + 4 if word[1:].isdigit() else 3 for word in line.split()] + [EOS]
                expected = greedy(net, architecture, tokens, LIMIT)
                assert text == " ".join(f"t{token - 4}" if token > 3 else "<unk>" for token in expected)
