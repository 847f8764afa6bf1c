"""Folders of small models with random weights and a tokenizer of words."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import sentencepiece
import tokenizers
import torch
import transformers

from tests.hf_ext.conftest import WORDS

SIZES = {"hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 48}
MARIAN = {
    "d_model": 32, "encoder_layers": 3, "encoder_attention_heads": 4, "encoder_ffn_dim": 48, "decoder_layers": 2,
    "decoder_attention_heads": 4, "decoder_ffn_dim": 40, "decoder_start_token_id": 1, "eos_token_id": 0,
    "forced_eos_token_id": 0, "scale_embedding": True,
}  # fmt: skip


def model(name: str, **settings: Any) -> Any:
    """A model whose biases and norms are random too."""
    kind = getattr(transformers, name)
    torch.manual_seed(0)
    options = {
        **(MARIAN if name.startswith("Marian") else SIZES),
        "vocab_size": 40,
        "max_position_embeddings": 34,
        "pad_token_id": 1,
        **settings,
    }
    network = kind(kind.config_class(**options)).eval()
    with torch.no_grad():
        for tensor in network.parameters():
            if tensor.requires_grad:
                tensor += 0.1 * torch.randn_like(tensor)
    return network


def save(name: str, folder: Path, **settings: Any) -> Path:
    network = model(name, **settings)
    network.save_pretrained(folder)
    if "num_channels" in settings:
        size = {"height": 16, "width": 16}
        transformers.ViTImageProcessor(size=size).save_pretrained(folder)
        return folder
    if network.config.model_type == "marian":
        return _pieces(folder)
    special = ["[UNK]", "[PAD]", "[CLS]", "[SEP]", "[MASK]"]
    if network.config.model_type in ("llama", "qwen2"):  # bytes as tokens, and no padding token, like Llama's
        end = "<|endoftext|>"
        letters = {letter: number for number, letter in enumerate([end, *"word0123456789\u0120"])}
        core = tokenizers.Tokenizer(tokenizers.models.BPE(letters, []))
        core.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
        transformers.PreTrainedTokenizerFast(tokenizer_object=core, eos_token=end).save_pretrained(folder)
        return folder
    (folder / "vocab.txt").write_text("\n".join([*special, *WORDS]))
    named = {f"{token[1:-1].lower()}_token": token for token in special}
    tokenizer = {"tokenizer_class": "BertTokenizer", "model_max_length": 32, **named}
    (folder / "tokenizer_config.json").write_text(json.dumps(tokenizer))
    return folder


def _pieces(folder: Path) -> Path:
    """Write the tokenizer of a Marian model: each word is a piece."""
    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([" ".join(WORDS)]), model_writer=written, model_type="word", vocab_size=33, bos_id=-1,
        hard_vocab_limit=False, minloglevel=2,
    )  # fmt: skip
    for side in ("source", "target"):
        (folder / f"{side}.spm").write_bytes(written.getvalue())
    pieces = ["</s>", "<pad>", "<unk>", *(f"\u2581{word}" for word in WORDS)]
    (folder / "vocab.json").write_text(json.dumps({piece: number for number, piece in enumerate(pieces)}))
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "MarianTokenizer"}))
    return folder
