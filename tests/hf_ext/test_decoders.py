"""Decoders of Llama's family: subnets as plain folders, perplexity, training, and the kind of network."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch

from nas_core.errors import CheckpointError, ConfigError
from nas_core.models.kind import kind_of
from nas_core.space import Architecture
from nas_core.supernet import open_supernet
from nas_core.supernet.elastic.conversion import convert
from nas_core.supernet.host import open_trained
from tests.hf_ext.test_conversion import batch, genes
from tests.hf_ext.test_trainer import trainer
from tests.hf_ext.tiny import model, save


@pytest.mark.parametrize("changes", [{"layers": 2}, {"kv_heads": 1, "ffn_dim": 12}, {"kv_heads": 1, "embed_dim": 24}])
def test_a_subnet_is_a_plain_folder_of_equal_output(decoder: Path, tmp_path: Path, changes: dict[str, int]) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    supernet: Any = open_supernet(decoder)
    architecture = genes(supernet, **changes)
    parameters = supernet.extract(architecture, tmp_path / "subnet")
    loaded, info = AutoModelForCausalLM.from_pretrained(tmp_path / "subnet", output_loading_info=True)
    assert not info["missing_keys"] and not info["unexpected_keys"]
    assert parameters == sum(tensor.numel() for tensor in loaded.parameters())
    assert loaded.config.num_attention_heads == 2 * loaded.config.num_key_value_heads == 2 * architecture["kv_heads"]
    AutoTokenizer.from_pretrained(tmp_path / "subnet")
    for inputs in (batch(), batch(left=True)):
        with torch.no_grad():
            logits = supernet.elastic(supernet.elastic.select(architecture), inputs).logits
            expected = loaded.eval()(**inputs).logits
        seen = inputs["attention_mask"].bool()
        torch.testing.assert_close(logits[seen], expected[seen], rtol=0, atol=1e-5)
    with torch.no_grad():
        tokens = loaded.generate(batch()["input_ids"][:1], max_new_tokens=3, do_sample=False, eos_token_id=None)
    assert tokens.shape == (1, 12)


def test_heads_leave_with_their_keys_and_values(texts: Path, tmp_path: Path) -> None:
    """The first group of heads has no output in any layer."""
    from transformers import AutoModelForCausalLM

    trained = save("Qwen2ForCausalLM", tmp_path / "trained", num_key_value_heads=2)
    network = AutoModelForCausalLM.from_pretrained(trained)
    with torch.no_grad():
        for layer in network.model.layers:
            layer.self_attn.o_proj.weight[:, :16] = 0
    network.save_pretrained(trained)
    opened = open_trained(trained, data=str(texts), space="auto:kv_heads", calibration_batches=1)
    convert(opened, tmp_path / "family", importance_by="activation", calibration_batches=1)
    supernet = open_supernet(tmp_path / "family")
    losses = [supernet.evaluate(genes(supernet, kv_heads=groups))["loss"] for groups in (2, 1)]
    assert losses[1] == pytest.approx(losses[0], rel=1e-5)


def test_the_perplexity_is_transformers(decoder: Path) -> None:
    from transformers import AutoModelForCausalLM

    supernet: Any = open_supernet(decoder)
    network = AutoModelForCausalLM.from_pretrained(decoder).eval()
    (only,) = supernet.batches()
    assert (only["labels"] == -100).equal(only["attention_mask"] == 0)
    with torch.no_grad():
        expected = float(network(**only).loss)
    metrics = supernet.evaluate(supernet.space.largest())
    assert metrics["loss"] == pytest.approx(expected, rel=1e-4)
    assert metrics["perplexity"] == pytest.approx(math.exp(expected), rel=1e-3)


@pytest.mark.parametrize("distill", ["logits", "labels"])
def test_training_lowers_the_loss_of_the_smallest_network(
    distill: str, decoder: Path, texts: Path, tmp_path: Path
) -> None:
    from transformers import AutoTokenizer, DataCollatorForLanguageModeling

    training = trainer(decoder, texts, tmp_path / "run", steps=20, distill=distill)
    tokenizer = AutoTokenizer.from_pretrained(decoder, pad_token="<|endoftext|>")
    training.data_collator = DataCollatorForLanguageModeling(tokenizer, mlm=False)
    smallest, largest = training.supernet.space.smallest(), training.supernet.space.largest()
    inputs = batch()
    with torch.no_grad():
        teacher = training.supernet(training.supernet.select(largest), inputs, training=False).logits.softmax(-1)

    def distance(folder: Path) -> float:
        if distill == "labels":
            return open_supernet(folder).evaluate(smallest)["loss"]
        network = open_supernet(folder).network
        with torch.no_grad():
            logits = network(network.select(smallest), inputs, training=False).logits
        return float(torch.nn.functional.cross_entropy(logits.flatten(0, 1), teacher.flatten(0, 1)))

    training.train()
    assert distance(tmp_path / "run" / "checkpoint-20") < distance(decoder)


def test_the_kind_counts_and_times_what_is_extracted(decoder: Path) -> None:
    supernet: Any = open_supernet(decoder)
    space = supernet.space
    kind = kind_of(space)
    config = kind.config(kind.task_settings(supernet.task) | {"length": 6})
    for architecture in (space.smallest(), space.largest(), genes(supernet, kv_heads=1, layers=2)):
        static = supernet.elastic.static_model(supernet.elastic.select(architecture))
        body = sum(tensor.numel() for tensor in static.model.parameters()) - static.model.embed_tokens.weight.numel()
        assert round(1e6 * kind.params_m(architecture)) == body
        workload: Any = kind.workload(space, architecture, config)
        built, tokens = workload.modules[0], workload._tokens  # private: inputs
        assert sum(tensor.numel() for tensor in built.parameters()) == kind.weights(architecture, config)
        if architecture == space.smallest():
            workload.convert(torch.float32)
        with torch.inference_mode():
            expected = built(tokens).logits[:, -1:]
            for _ in range(2):
                torch.testing.assert_close(workload.decode(), expected, rtol=0, atol=1e-5)
        states = [state for layer in workload._cache.layers for state in (layer.keys, layer.values)]
        assert sum(state.numel() for state in states) / 6 * 7 == kind.cache(architecture, config)
        assert len(kind.graph(architecture).ops) == 2 + 2 * architecture.number("layers")
        assert kind.flops_g(architecture) > 0
        assert len(kind.layers(architecture)[""]["kv_heads"]) == architecture["layers"]
        with pytest.raises(ConfigError):
            kind.exports(space, architecture, config)
    assert kind.name == "llama" and Architecture(dict(space.largest())) == space.largest()


def test_latency_search_and_extraction_by_the_commands(decoder: Path, tmp_path: Path) -> None:
    from nas_core.cli import main
    from nas_core.space import save_space

    space, run, times = tmp_path / "space.yml", tmp_path / "run", tmp_path / "times.jsonl"
    save_space(open_supernet(decoder).space, space)
    timing = ["--workload", "length=8", "--workload", "vocab=40", "--samples", "14", "--warmup", "0", "--repeats", "1"]
    assert main(["latency", "collect", "--space", str(space), *timing, "--out", str(times)]) == 0
    assert main(["latency", "fit", "--data", str(times), "--out", str(tmp_path / "fit.json")]) == 0
    settings = ["--latency-model", str(tmp_path / "fit.json"), "--limit", "latency_ms=1e6", "--strategy", "random"]
    settings += ["--set", "evaluations=4", "--finalists", "1", "--no-measure", "--out", str(run)]
    assert main(["search", "--checkpoint", str(decoder), *settings]) == 0
    (finalist,) = (run / "finalists").glob("*.json")
    assert main(["extract", "--checkpoint", str(decoder), "--arch", str(finalist), "--out", str(tmp_path / "x")]) == 0
    assert main(["report", str(run)]) == 0


def test_layers_of_different_attention_are_rejected(tmp_path: Path) -> None:
    mixed = {"use_sliding_window": True, "sliding_window": 4, "max_window_layers": 1, "num_key_value_heads": 2}
    model("Qwen2ForCausalLM", **mixed).save_pretrained(tmp_path / "trained")
    with pytest.raises(CheckpointError, match="layer_types"):
        open_trained(tmp_path / "trained")
