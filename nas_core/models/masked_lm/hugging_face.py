"""Export of a static encoder to a Hugging Face BERT folder, for ``transformers``.

Segment embeddings are 0. In ``transformers``, padding must be on the right and masked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from nas_core.errors import ConfigError, unknown_choice
from nas_core.files.writing import atomic_output, make_folder, write_atomic, write_json
from nas_core.layers.weights import named_tensors
from nas_core.models.masked_lm.net import MaskedLMNet, Subnet
from nas_core.models.static import copy_state, select_eval
from nas_core.space import Architecture
from nas_core.space.bert import encoder_layers, joint_sizes, network_width

# Activations with other names in transformers.
_ACTIVATIONS = {"gelu_tanh": "gelu_pytorch_tanh"}
_SEGMENTS = 2
_LAYER = {
    "self_attn.out_proj": "attention.output.dense",
    "self_attn_norm": "attention.output.LayerNorm",
    "ffn.fc1": "intermediate.dense",
    "ffn.fc2": "output.dense",
    "ffn_norm": "output.LayerNorm",
}


def write_bert(
    net: MaskedLMNet,
    architecture: Architecture,
    folder: str | Path,
    tokens: Sequence[str] = (),
    head: str | None = None,
) -> int:
    """Write the subnet of an architecture as a BERT model, and return its number of weights.

    Args:
        tokens: content of ``vocab.txt``.
        head: classification head, exported as pooler and classifier. None means the token head.

    Raises:
        ConfigError: BERT does not support the architecture, or ``folder`` is a file.
    """
    check_bert_layout(net, architecture, head)
    folder = Path(folder)
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"{folder} is a file; expected a folder, give another path")
    state = bert_state(net, select_eval(net, architecture), head)
    make_folder(folder)
    with atomic_output(folder / "model.safetensors") as path:
        save_file(state, path, metadata={"format": "pt"})
    write_json(folder / "config.json", bert_config(net, architecture, head))
    if tokens:
        write_atomic(folder / "vocab.txt", "".join(f"{token}\n" for token in tokens))
    return sum(tensor.numel() for tensor in state.values())


def check_bert_layout(net: MaskedLMNet, architecture: Architecture, head: str | None = None) -> None:
    """Raise ``ConfigError`` if layers differ in size, or if BERT does not support a setting."""
    config, layers, width = net.config, encoder_layers(architecture), network_width(architecture)
    if head is not None and head not in net.classification_heads:
        raise unknown_choice("classification head", head, net.classification_heads)
    for gene in ("ffn_dim", "heads", "attention"):
        values = [getattr(layer, gene) for layer in layers]
        if len(set(values)) > 1:
            raise _unlike(f"{gene} differs between layers ({', '.join(map(str, values))})")
    inner = 0 if head is None else min(net.classification_heads[head].inner, width)
    reasons = {
        "linear maps lie between its layers": bool(joint_sizes(architecture)),
        f"query width {layers[0].qkv_dim} differs from the embedding width {width}": layers[0].qkv_dim != width,
        f"attention is {layers[0].attention}": layers[0].attention != "softmax",
        f"positions are {config.positions}": config.positions != "learned" or config.first_position != 0,
        "layer norms precede sublayers": config.norm_first,
        "no layer norm follows the embedding": not config.embedding_norm,
        "embeddings are scaled": net.embedding_scale(net.embedding.weight[:, :width]) != 1.0,
        f"classifier width {inner} differs from the embedding width {width}": head is not None and inner != width,
        f"activation of the classifier is {config.pooler_activation}": head is not None
        and config.pooler_activation != "tanh",
    }
    for reason, applies in reasons.items():
        if applies:
            raise _unlike(reason)


def bert_config(net: MaskedLMNet, architecture: Architecture, head: str | None = None) -> dict[str, Any]:
    layers, width, config = encoder_layers(architecture), network_width(architecture), net.config
    share = width / net.positions.width
    classes = {} if head is None else {"num_labels": net.classification_heads[head].classes}
    return {
        "model_type": "bert",
        "architectures": ["BertForMaskedLM" if head is None else "BertForSequenceClassification"],
        "vocab_size": len(net.embedding.weight),
        "hidden_size": width,
        "num_hidden_layers": len(layers),
        "num_attention_heads": layers[0].heads,
        "intermediate_size": layers[0].ffn_dim,
        "hidden_act": _ACTIVATIONS.get(config.activation, config.activation),
        "hidden_dropout_prob": config.dropout * share,
        "attention_probs_dropout_prob": config.attention_dropout,
        "max_position_embeddings": len(net.positions.table),
        "type_vocab_size": _SEGMENTS,
        "layer_norm_eps": config.norm_eps,
        "pad_token_id": config.padding_idx,
        "tie_word_embeddings": config.share_embeddings,
        "torch_dtype": "float32",
        **classes,
    }


def bert_state(net: MaskedLMNet, subnet: Subnet, head: str | None = None) -> dict[str, Tensor]:
    """Return the tensors of a BERT model by their names in ``transformers``."""
    width = subnet.embedding.shape[1]
    embeddings = {
        "word_embeddings.weight": subnet.embedding,
        "position_embeddings.weight": net.positions.table[:, :width],
        "token_type_embeddings.weight": subnet.embedding.new_zeros(_SEGMENTS, width),
        **{f"LayerNorm.{kind}": tensor for kind, tensor in named_tensors(subnet.embedding_norm)},
    }
    named = [(f"bert.embeddings.{name}", tensor) for name, tensor in embeddings.items()]
    named += _layers(subnet)
    weights_of: dict[str, Any]
    if head is not None:
        dense, out_proj = subnet.classification_heads[head]
        weights_of = {"bert.pooler.dense": dense, "classifier": out_proj}
    else:
        prefix = "cls.predictions"
        weights_of = {f"{prefix}.transform.dense": subnet.head.dense, f"{prefix}.transform.LayerNorm": subnet.head.norm}
        named.append((f"{prefix}.bias", subnet.head.bias))
        if not net.config.share_embeddings:
            named += [(f"{prefix}.decoder.weight", subnet.output), (f"{prefix}.decoder.bias", subnet.head.bias)]
    named += [
        (f"{name}.{kind}", tensor) for name, tensors in weights_of.items() for kind, tensor in named_tensors(tensors)
    ]
    return copy_state((name, tensor.float()) for name, tensor in named)


def _layers(subnet: Subnet) -> Iterator[tuple[str, Tensor]]:
    for index, layer in enumerate(subnet.layers):
        prefix = f"bert.encoder.layer.{index}"
        for name, tensor in named_tensors(layer):
            owner, kind = name.rsplit(".", 1)
            if owner == "self_attn.in_proj":
                names = (f"{prefix}.attention.self.{part}.{kind}" for part in ("query", "key", "value"))
                yield from zip(names, torch.chunk(tensor, 3), strict=True)
            else:
                yield f"{prefix}.{_LAYER[owner]}.{kind}", tensor


def _unlike(reason: str) -> ConfigError:
    return ConfigError(f"this subnet is not a Hugging Face BERT: {reason}; omit --hugging-face")
