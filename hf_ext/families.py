"""Supported model families of ``transformers``, and the names of their layers and settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

PER_LAYER = ("ffn_dim", "kv_heads")
"""Genes that may differ between layers."""
_SIZES = {
    "layers": "num_hidden_layers",
    "embed_dim": "hidden_size",
    "ffn_dim": "intermediate_size",
}


@dataclass(frozen=True)
class Family:
    """Names of modules that the models of a family have in common."""

    layers: Mapping[str, str] = field(default_factory=lambda: {"": "encoder.layer"})
    """Side (``encoder`` or ``decoder``; "" for one stack) -> name of its list of layers in the base model."""
    heads: Mapping[str, int] = field(
        default_factory=lambda: {
            "attention.self.query": 0,
            "attention.self.key": 0,
            "attention.self.value": 0,
            "attention.output.dense": 1,
        }
    )
    """Linear layer of a layer -> dimension of its weight along the heads. The first part is the attention's name."""
    head_numbers: tuple[str, ...] = ("num_attention_heads",)
    """Settings for the number of heads, all of the same value."""
    sizes: Mapping[str, str] = field(default_factory=lambda: _SIZES)
    """Gene -> setting in ``config.json``."""
    ends: Mapping[str, tuple[str, str]] = field(
        default_factory=lambda: {
            "self_attn": ("attention.output.dense", "attention.output.LayerNorm"),
            "ffn": ("output.dense", "output.LayerNorm"),
        }
    )
    """Sublayer -> its output layer and layer norm."""
    norm_first: bool = False
    """True if layer norms come before sublayers."""
    heads_follow: str = "hidden_size"
    """Setting to which the number of heads is proportional."""
    constant: Mapping[str, Callable[[Any], int]] = field(default_factory=lambda: _encoder_genes(0))
    """Gene that is not searched -> its value in a configuration."""
    kind: str = "masked_lm"
    """Kind of network whose genes it has."""
    classes: tuple[str, ...] = ("",)
    """Endings of the supported classes' names."""

    def setting(self, side: str, gene: str) -> str:
        """Return the setting of a side's ``layers`` or ``ffn_dim``."""
        return self.sizes[f"{side}.{gene}" if side else gene]


def head_dim_of(config: Any) -> int:
    return int(getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads)


def head_groups(config: Any) -> int:
    """Return the number of groups of heads in a layer that have keys and values in common."""
    return int(getattr(config, "num_key_value_heads", None) or config.num_attention_heads)


def _encoder_genes(offset: int) -> Mapping[str, Callable[[Any], int]]:
    """Return the constant genes of an encoder with ``offset`` stored positions that no token has."""
    return {"head_dim": head_dim_of, "sequence_length": lambda config: config.max_position_embeddings - offset}


_ROBERTA = Family(constant=_encoder_genes(2))
_LLAMA = Family(
    layers={"": "layers"},
    heads={"self_attn.q_proj": 0, "self_attn.k_proj": 0, "self_attn.v_proj": 0, "self_attn.o_proj": 1},
    ends={
        "self_attn": ("self_attn.o_proj", "input_layernorm"),
        "ffn": ("mlp.down_proj", "post_attention_layernorm"),
    },
    norm_first=True,
    sizes={**_SIZES, "kv_heads": "num_key_value_heads"},
    heads_follow="num_key_value_heads",
    constant={
        "head_dim": head_dim_of,
        "heads_per_kv": lambda config: config.num_attention_heads // config.num_key_value_heads,
        "context_length": attrgetter("max_position_embeddings"),
    },
    kind="llama",
    classes=("Model", "ForCausalLM"),
)
_VIT = Family(
    layers={"": "layers"},
    heads={"attention.q_proj": 0, "attention.k_proj": 0, "attention.v_proj": 0, "attention.o_proj": 1},
    constant={
        "head_dim": head_dim_of,
        "heads": attrgetter("num_attention_heads"),
        "image_size": attrgetter("image_size"),
        "patch_size": attrgetter("patch_size"),
        "relative_clip": lambda config: 0,
    },
    kind="image",
    classes=("ForImageClassification",),
)
_MARIAN = Family(
    layers={"encoder": "encoder.layers", "decoder": "decoder.layers"},
    heads={
        f"{attention}.{name}": int(name == "out_proj")
        for attention in ("self_attn", "encoder_attn")
        for name in ("q_proj", "k_proj", "v_proj", "out_proj")
    },
    head_numbers=("encoder_attention_heads", "decoder_attention_heads"),
    ends={
        "self_attn": ("self_attn.out_proj", "self_attn_layer_norm"),
        "cross_attn": ("encoder_attn.out_proj", "encoder_attn_layer_norm"),
        "ffn": ("fc2", "final_layer_norm"),
    },
    sizes={
        "encoder.layers": "encoder_layers",
        "decoder.layers": "decoder_layers",
        "embed_dim": "hidden_size",
        "encoder.ffn_dim": "encoder_ffn_dim",
        "decoder.ffn_dim": "decoder_ffn_dim",
    },
    constant={"head_dim": head_dim_of, "context_length": attrgetter("max_position_embeddings")},
    kind="marian",
    classes=("MTModel",),
)

FAMILIES: dict[str, Family] = {
    "bert": Family(),
    "roberta": _ROBERTA,
    "xlm-roberta": _ROBERTA,
    "camembert": _ROBERTA,
    "llama": _LLAMA,
    "qwen2": _LLAMA,
    "vit": _VIT,
    "deit": _VIT,
    "marian": _MARIAN,
}
"""Families by ``model_type``."""
