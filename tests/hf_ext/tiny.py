"""Folders of small models with random weights and a tokenizer of words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
import transformers

from tests.hf_ext.conftest import WORDS

SIZES = {"hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 48}


def model(name: str, **settings: Any) -> Any:
    """A model whose biases and norms are random too."""
    kind = getattr(transformers, name)
    torch.manual_seed(0)
    options = {**SIZES, "vocab_size": 40, "max_position_embeddings": 34, "pad_token_id": 1, **settings}
    network = kind(kind.config_class(**options)).eval()
    with torch.no_grad():
        for tensor in network.parameters():
            tensor += 0.1 * torch.randn_like(tensor)
    return network


def save(name: str, folder: Path, **settings: Any) -> Path:
    model(name, **settings).save_pretrained(folder)
    special = ["[UNK]", "[PAD]", "[CLS]", "[SEP]", "[MASK]"]
    (folder / "vocab.txt").write_text("\n".join([*special, *WORDS]))
    named = {f"{token[1:-1].lower()}_token": token for token in special}
    tokenizer = {"tokenizer_class": "BertTokenizer", "model_max_length": 32, **named}
    (folder / "tokenizer_config.json").write_text(json.dumps(tokenizer))
    return folder
