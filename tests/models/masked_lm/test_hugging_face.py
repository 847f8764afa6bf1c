"""Subnets in the layout of Hugging Face's BERT, read by a plain BERT, and by ``transformers`` where it is there."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from torch import Tensor

from nas_core.errors import ConfigError, UnknownChoiceError
from nas_core.files.reading import read_json
from nas_core.models.masked_lm.hugging_face import write_bert
from nas_core.models.masked_lm.net import ClassHead
from nas_core.space import Architecture
from nas_core.space.bert import bert_space
from tests.models.masked_lm.tiny import PAD, SPACE, VOCAB, build, close

EQUAL = bert_space(
    "equal", layers=(2, 1), hidden_dims=(16, 12), heads=(4, 2), ffn_ratios=(2.5, 1.5), sequence_length=12
)
SMALL = Architecture({**EQUAL.largest().to_dict(), "hidden_dim": 12, "heads": 2, "ffn_ratio": 1.5})
HEADS = (ClassHead("topic", 3, 16), ClassHead("narrow", 2, 5))
TOKENS = [f"w{number}" for number in range(VOCAB)]


def batch() -> tuple[Tensor, Tensor]:
    """Tokens (2, 7), the second sentence padded on the right, and where there are tokens."""
    tokens = torch.randint(4, VOCAB, (2, 7), generator=torch.Generator().manual_seed(0))
    tokens[1, 4:] = PAD
    return tokens, tokens != PAD


def bert(config: dict[str, Any], state: dict[str, Tensor], tokens: Tensor, mask: Tensor) -> Tensor:
    """Devlin et al. 2019 with the names of ``transformers``: features (B, T, C)."""

    def linear(x: Tensor, name: str) -> Tensor:
        return F.linear(x, state[f"{name}.weight"], state[f"{name}.bias"])

    def normed(x: Tensor, name: str) -> Tensor:
        return F.layer_norm(x, x.shape[-1:], state[f"{name}.weight"], state[f"{name}.bias"], config["layer_norm_eps"])

    at = "bert.embeddings"
    x = state[f"{at}.word_embeddings.weight"][tokens] + state[f"{at}.token_type_embeddings.weight"][0]
    x = normed(x + state[f"{at}.position_embeddings.weight"][: tokens.shape[1]], f"{at}.LayerNorm")
    heads = config["num_attention_heads"]
    for index in range(config["num_hidden_layers"]):
        at = f"bert.encoder.layer.{index}"
        names = (f"{at}.attention.self.{part}" for part in ("query", "key", "value"))
        q, k, v = (linear(x, name).unflatten(-1, (heads, -1)).transpose(1, 2) for name in names)
        scores = (q @ k.mT / q.shape[-1] ** 0.5).masked_fill(~mask[:, None, None], -torch.inf)
        read = (scores.softmax(-1) @ v).transpose(1, 2).flatten(2)
        x = normed(x + linear(read, f"{at}.attention.output.dense"), f"{at}.attention.output.LayerNorm")
        hidden = F.gelu(linear(x, f"{at}.intermediate.dense"))
        x = normed(x + linear(hidden, f"{at}.output.dense"), f"{at}.output.LayerNorm")
    return x


@pytest.mark.parametrize("mos", ["none", "neuron"])
@torch.no_grad()
def test_names_and_shapes_are_those_of_bert_and_it_computes_the_same(mos: str, tmp_path: Path) -> None:
    net, (tokens, mask) = build(space=EQUAL, mos=mos), batch()
    count = write_bert(net, SMALL, tmp_path / "out", TOKENS)
    config, state = read_json(tmp_path / "out" / "config.json"), load_file(tmp_path / "out" / "model.safetensors")
    assert config["architectures"] == ["BertForMaskedLM"] and config["model_type"] == "bert"
    assert (config["hidden_size"], config["intermediate_size"], config["num_attention_heads"]) == (12, 18, 2)
    assert (tmp_path / "out" / "vocab.txt").read_text().split() == TOKENS
    assert count == sum(tensor.numel() for tensor in state.values())
    subnet = net.select(SMALL)
    features = bert(config, state, tokens, mask)
    close(features[mask], net.encode(subnet, tokens)[mask])
    if importlib.util.find_spec("transformers") is not None:
        import transformers

        loaded, loading_info = transformers.BertForMaskedLM.from_pretrained(tmp_path / "out", output_loading_info=True)
        assert not loading_info["unexpected_keys"] and not loading_info["missing_keys"]
        logits = loaded.eval()(input_ids=tokens, attention_mask=mask.long()).logits
        close(logits[mask], net(subnet, tokens)[mask], 1e-4)


@torch.no_grad()
def test_a_classifier_is_pooler_and_classifier(tmp_path: Path) -> None:
    net, (tokens, mask) = build(space=EQUAL, classification_heads=HEADS), batch()
    write_bert(net, SMALL, tmp_path, head="topic")
    config, state = read_json(tmp_path / "config.json"), load_file(tmp_path / "model.safetensors")
    assert config["architectures"] == ["BertForSequenceClassification"] and config["num_labels"] == 3
    assert not any(name.startswith("cls.") for name in state) and not (tmp_path / "vocab.txt").exists()
    first = bert(config, state, tokens, mask)[:, 0]
    pooled = torch.tanh(F.linear(first, state["bert.pooler.dense.weight"], state["bert.pooler.dense.bias"]))
    subnet = net.select(SMALL)
    expected = net.classify(subnet, net.encode(subnet, tokens), "topic")
    close(F.linear(pooled, state["classifier.weight"], state["classifier.bias"]), expected)


def test_what_is_no_bert_is_told(tmp_path: Path) -> None:
    shaped = bert_space("s", layers=(2,), hidden_dims=(16, 8), heads=(4,), ffn_dims=(8,), sequence_length=12,
                        outer_dim=16)  # fmt: skip
    uneven = Architecture({**SPACE.largest().to_dict(), "ffn_dim": [24, 24, 16]})
    narrow = Architecture({**SPACE.largest().to_dict(), "heads": [2, 2, 2]})
    classes = {"classification_heads": HEADS}
    for net, architecture, head, message in (
        (build(space=shaped), shaped.largest(), None, "linear maps lie between its layers"),
        (build(), uneven, None, "ffn_dim differs between layers \\(24, 24, 16\\)"),
        (build(), narrow, None, "query width 8 differs from the embedding width 16"),
        (build("sinusoids"), SPACE.largest(), None, "positions are sinusoidal"),
        (build("prenorm"), SPACE.largest(), None, "layer norms precede sublayers"),
        (build(embedding_norm=False), SPACE.largest(), None, "no layer norm follows the embedding"),
        (build(embedding_scale=None), SPACE.largest(), None, "embeddings are scaled"),
        (build(space=EQUAL, **classes), SMALL, "narrow", "classifier width 5 differs from the embedding width 12"),
        (
            build(space=EQUAL, pooler_activation="relu", **classes),
            SMALL,
            "topic",
            "activation of the classifier is relu",
        ),
    ):
        with pytest.raises(ConfigError, match=f"not a Hugging Face BERT: .*{message}; omit"):
            write_bert(net, architecture, tmp_path / "out", head=head)
    assert not (tmp_path / "out").exists()
    with pytest.raises(UnknownChoiceError, match="classification head 'x'"):
        write_bert(build(space=EQUAL), SMALL, tmp_path, head="x")
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="is a file; expected a folder"):
        write_bert(build(space=EQUAL), SMALL, tmp_path / "file")
