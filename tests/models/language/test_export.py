"""Exported prompts and decoding steps, run by onnxruntime, against the supernet they come from."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from nas_core.export import write_export
from nas_core.export.parts import Exportable
from nas_core.files.reading import read_json
from nas_core.graph.onnx.reader import read_onnx
from nas_core.models.language.export import language_info, language_parts
from tests.models.language.tiny import architecture, build, sentences

runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
pytest.importorskip("onnxscript", reason="onnxscript is not installed")
pytestmark = pytest.mark.onnx

LONGEST = 50
EXPORTED = {"mixed": {"norm_first": True}, "softmax": {"positions": "learned", "first_position": 2}}


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The networks as folders."""
    folders = {}
    for kinds, config in EXPORTED.items():
        net, chosen = build("layer", **config).eval(), architecture(kinds)
        parts = language_parts(net, chosen, LONGEST)
        folders[kinds] = tmp_path_factory.mktemp("export") / kinds
        write_export(Exportable(parts, language_info(*parts)), folders[kinds])
    return folders


@pytest.mark.parametrize("kinds", EXPORTED)
@pytest.mark.parametrize("prompt", [0, 30])
def test_a_prompt_and_steps_give_the_full_forward_of_the_supernet(
    exported: dict[str, Path], kinds: str, prompt: int
) -> None:
    net, tokens = build("layer", **EXPORTED[kinds]).eval(), sentences(3, 37)
    with torch.no_grad():
        expected = F.log_softmax(net(net.select(architecture(kinds)), tokens), -1)
    model = read_json(exported[kinds] / "model.json")
    assert model["limits"] == {"tokens": LONGEST} and model["kind"] == "language"
    read, step = (
        runtime.InferenceSession(str(exported[kinds] / f"{part}.onnx")) for part in ("prompt", "decoder_step")
    )
    outputs = [value.name for value in step.get_outputs()]
    caches = {
        cache["input"]: np.zeros([3 if dim == "batch" else dim for dim in cache["start"]], np.float32)
        for cache in model["caches"]
    }
    if prompt:
        scores, *behind = read.run(None, {"tokens": tokens[:, :prompt].numpy()})
        np.testing.assert_allclose(scores, expected[:, prompt - 1], atol=1e-4)
        caches = dict(zip(caches, behind, strict=True))
    for at in range(prompt, 37):
        settings = {"token": tokens[:, at].numpy(), "position": np.array(at), **caches}
        out = dict(zip(outputs, step.run(None, settings), strict=True))
        np.testing.assert_allclose(out["log_probs"], expected[:, at], atol=1e-4)
        caches = {cache["input"]: out[cache["output"]] for cache in model["caches"]}


@pytest.mark.parametrize("kinds", EXPORTED)
def test_every_operator_is_known_to_the_graph_reader(exported: dict[str, Path], kinds: str) -> None:
    for part, sizes in (("prompt", {"length": 5}), ("decoder_step", {"past": 3})):
        read = read_onnx(exported[kinds] / f"{part}.onnx", shapes={"batch": 2, **sizes})
        assert not read.unknown and read.flops_g > 0
