"""Networks whose layers differ in size: folders that load without nas-ext, costs, training and the option."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from nas_core.errors import CheckpointError, SpaceError
from nas_core.models.kind import kind_of
from nas_core.space import Architecture, Choice, SearchSpace, get_space, save_space
from nas_core.supernet import open_supernet
from nas_core.supernet.elastic.conversion import convert
from nas_core.supernet.host import open_trained
from tests.hf_ext.test_conversion import batch
from tests.hf_ext.test_images import SETTINGS
from tests.hf_ext.test_trainer import trainer
from tests.hf_ext.tiny import save

WITHOUT = """
import contextlib
import sys
from pathlib import Path

with contextlib.suppress(ImportError):
    import torchvision  # a hook of this environment repairs it by nas_core
for name in [name for name in sys.modules if name.partition(".")[0] in ("nas_core", "hf_ext")]:
    del sys.modules[name]

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("nas_core", "hf_ext"):
            raise ImportError(name)

sys.meta_path.insert(0, Blocked())
import torch
import transformers
from safetensors.torch import load_file, save_file

for folder in map(Path, sys.argv[1:]):
    kind = getattr(transformers, (folder / "kind").read_text())
    model, info = kind.from_pretrained(folder, trust_remote_code=True, output_loading_info=True)
    assert not info["missing_keys"] and not info["unexpected_keys"] and not info["mismatched_keys"], info
    inputs = load_file(folder / "inputs.safetensors")
    seen = inputs["attention_mask"].bool() if "attention_mask" in inputs else slice(None)
    with torch.no_grad():
        output = model.eval()(**inputs).to_tuple()[0]
        model.set_attn_implementation("eager")
        torch.testing.assert_close(model(**inputs).to_tuple()[0][seen], output[seen], rtol=0, atol=1e-5)
        if kind is transformers.AutoModelForCausalLM:
            settings = {"max_new_tokens": 5, "do_sample": False, "eos_token_id": None}
            written = [model.generate(inputs["input_ids"][:1], use_cache=cache, **settings) for cache in (True, False)]
            assert written[0].shape == (1, 14) and written[0].equal(written[1])
    if "pixel_values" not in inputs:
        transformers.AutoTokenizer.from_pretrained(folder)
    save_file({"output": output.contiguous()}, folder / "output.safetensors")
assert not {"nas_core", "hf_ext"} & {*sys.modules}
"""
"""Program that loads folders and saves their outputs, where nas-ext cannot be imported."""

MODELS: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "BertModel": ("AutoModel", {}, {"layers": 2, "embed_dim": 24, "ffn_dim": (12, 48)}),
    "BertForMaskedLM": ("AutoModelForMaskedLM", {}, {"ffn_dim": (12, 48, 24)}),
    "XLMRobertaForTokenClassification": ("AutoModelForTokenClassification", {}, {"ffn_dim": (48, 12, 12)}),
    "LlamaForCausalLM": (
        "AutoModelForCausalLM",
        {"num_key_value_heads": 2},
        {"embed_dim": 24, "kv_heads": (1, 2, 1), "ffn_dim": (12, 24, 24)},
    ),
    "Qwen2ForCausalLM": (
        "AutoModelForCausalLM",
        {"num_key_value_heads": 2, "tie_word_embeddings": True},
        {"layers": 2, "kv_heads": (2, 1), "ffn_dim": (48, 48)},
    ),
    "ViTForImageClassification": ("AutoModelForImageClassification", SETTINGS, {"layers": 2, "ffn_dim": (12, 36)}),
}
"""Model -> class that loads it, settings, and genes of the subnet."""


def families(name: str, folder: Path, texts: Path) -> Any:
    settings = MODELS[name][1]
    trained = save(name, folder / "trained", **settings)
    if "num_channels" in settings:
        convert(open_trained(trained, uniform=False), folder / "family")
    else:
        opened = open_trained(trained, data=str(texts), calibration_batches=1, uniform=False)
        convert(opened, folder / "family", importance_by="activation", calibration_batches=1)
    return open_supernet(folder / "family")


@pytest.fixture(scope="module")
def unequal(texts: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A supernet of a BERT whose layers may differ in size."""
    folder = tmp_path_factory.mktemp("unequal")
    families("BertModel", folder, texts)
    return folder / "family"


def test_folders_load_where_nas_ext_cannot_be_imported(texts: Path, tmp_path: Path) -> None:
    pixels = torch.randn(2, 3, 16, 16, generator=torch.Generator().manual_seed(0))
    expected = {}
    for name, (kind, _, changes) in MODELS.items():
        supernet = families(name, tmp_path / name, texts)
        architecture = supernet.space.validate(Architecture({**supernet.space.largest(), **changes}))
        parameters = supernet.extract(architecture, subnet := tmp_path / name / "subnet")
        stored = sum(tensor.numel() for tensor in load_file(subnet / "model.safetensors").values())
        assert stored <= parameters < sum(tensor.numel() for tensor in supernet.elastic.model.parameters())
        inputs = {"pixel_values": pixels} if "ViT" in name else batch(left="LM" in name)
        with torch.no_grad():
            output = supernet.elastic(supernet.elastic.select(architecture), inputs)
        expected[name] = inputs, output.get("logits")
        if expected[name][1] is None:
            kept = torch.argsort(supernet.elastic.channels[: architecture.number("embed_dim")])
            expected[name] = inputs, output.hidden_states[-1][..., kept]
        save_file(inputs, subnet / "inputs.safetensors")
        (subnet / "kind").write_text(kind)
    subnets = [str(tmp_path / name / "subnet") for name in MODELS]
    environment = {**os.environ, "HF_MODULES_CACHE": str(tmp_path / "modules"), "HF_HUB_OFFLINE": "1"}
    command = [sys.executable, "-c", WITHOUT, *subnets]
    run = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=280)
    assert run.returncode == 0, run.stderr
    for name, (inputs, wanted) in expected.items():
        output = load_file(tmp_path / name / "subnet" / "output.safetensors")["output"]
        seen = inputs["attention_mask"].bool() if "attention_mask" in inputs else slice(None)
        torch.testing.assert_close(output[seen], wanted[seen], rtol=0, atol=1e-5)


def test_equal_layers_are_a_plain_folder_and_code_is_not_converted(unequal: Path, tmp_path: Path) -> None:
    from transformers import AutoModel

    supernet: Any = open_supernet(unequal)
    largest = supernet.space.largest()
    assert largest["ffn_dim"] == (48, 48, 48)
    supernet.extract(Architecture({**largest, "ffn_dim": (24, 24, 24)}), tmp_path / "plain")
    config = json.loads((tmp_path / "plain" / "config.json").read_text())
    assert config["model_type"] == "bert" and config["intermediate_size"] == 24 and "auto_map" not in config
    assert not list((tmp_path / "plain").glob("*.py"))
    AutoModel.from_pretrained(tmp_path / "plain")
    supernet.extract(Architecture({**largest, "ffn_dim": (24, 48, 24)}), tmp_path / "own")
    with pytest.raises(CheckpointError, match="auto_map"):
        open_trained(tmp_path / "own")


def test_subnets_of_a_space_file_are_evaluated_and_trained(unequal: Path, texts: Path, tmp_path: Path) -> None:
    before: Any = open_supernet(unequal)
    save_space(before.space, tmp_path / "space.yml")
    again = open_trained(unequal.parent / "trained", space=str(tmp_path / "space.yml"))
    assert again.space == before.space
    small = Architecture({**before.space.largest(), "ffn_dim": (12, 12, 48)})
    assert before.evaluate(small)["spearman"] < 1
    trainer(unequal, texts, tmp_path / "run", steps=20, subnet=small).train()
    after = open_supernet(tmp_path / "run" / "checkpoint-20")
    assert after.evaluate(small)["spearman"] > before.evaluate(small)["spearman"]


def test_widths_of_each_layer_are_rejected(bert: Path, tmp_path: Path) -> None:
    layers, width = Choice.make("layers", (3,)), Choice.make("embed_dim", (32, 24), "layers", 3)
    genes = {"ffn_dim": 48, "head_dim": 8, "sequence_length": 34}
    save_space(SearchSpace("widths", [layers, width], genes), tmp_path / "space.yml")
    with pytest.raises(SpaceError):
        open_trained(bert, space=str(tmp_path / "space.yml"))


def test_costs_of_a_decoder_are_those_of_its_layers(texts: Path, tmp_path: Path) -> None:
    space = families("LlamaForCausalLM", tmp_path, texts).space
    kind, config = kind_of(space), kind_of(space).workload_config(vocab=40, length=7)
    mixed = space.validate(Architecture({**space.largest(), "kv_heads": (1, 2, 1), "ffn_dim": (12, 24, 48)}))
    network = kind.build(space, mixed, config)
    parameters = sum(tensor.numel() for tensor in network.parameters())
    assert parameters == round(kind.params_m(mixed) * 1e6) + 40 * 32 == kind.weights(mixed, config)
    workload = kind.workload(space, mixed, config)
    assert workload.decode().shape == (1, 1, 40)
    kept = sum(layer.keys.numel() + layer.values.numel() for layer in workload._cache.layers)
    assert kind.cache(mixed, config) == kept // 7 * 8
    largest = space.largest()
    assert kind.flops_g(mixed) < kind.flops_g(largest) and len(kind.graph(mixed).ops) == 8
    assert kind.layers(mixed) == {"": {"ffn_dim": (12, 24, 48), "kv_heads": (1, 2, 1)}}


def test_the_option_of_the_command(bert: Path, tmp_path: Path) -> None:
    from nas_core.cli import main

    command = ["elastic", "--checkpoint", str(bert), "--space", "auto:ffn_dim"]
    for option in ("--uniform", "--no-uniform"):
        place = tmp_path / option
        assert main([*command, "--out", str(place), "--space-out", f"{place}.yml", option]) == 0
    spaces = [get_space(str(tmp_path / f"{option}.yml")) for option in ("--uniform", "--no-uniform")]
    assert [space.cardinality() for space in spaces] == [4, 4**3]
