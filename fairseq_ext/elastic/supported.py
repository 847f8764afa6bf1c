"""Settings of fairseq's ``transformer``: its sizes, or which of its parts has no elastic form."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from fairseq.models import ARCH_CONFIG_REGISTRY
from fairseq.models.transformer import TransformerConfig
from fairseq.tasks import TASK_REGISTRY
from fairseq.tasks.translation import TranslationTask

from fairseq_ext.elastic.refusals import activation, check_off, check_sizes, readable, refuse, switched_on, task_in
from nas_core.errors import ConfigError
from nas_core.supernet.elastic.translation_space import SideSizes

_NO_FORM = (
    "adaptive_softmax_cutoff",
    "adaptive_input",
    "tie_adaptive_weights",
    "tie_adaptive_proj",
    "layernorm_embedding",
    "merge_src_tgt_embed",
    "no_cross_attention",
    "cross_self_attention",
    "char_inputs",
    "base_layers",
    "scale_attn",
    "scale_fc",
    "scale_heads",
    "scale_resids",
)
"""Options that change what is computed, and are off by default."""
_NO_FORM_OF_A_SIDE = ("xformers_att_config", "layers_to_keep")
_NO_FORM_OF_NOISE = ("pq", "scalar")


class TransformerSettings(NamedTuple):
    """What a trained transformer is like."""

    encoder: SideSizes
    decoder: SideSizes
    head_dim: int
    activation: str
    config: Any
    """fairseq's ``TransformerConfig``."""


@readable
def transformer_settings(settings: Mapping[str, Any], groups: Mapping[str, Any], path: Path) -> TransformerSettings:
    """Read the settings of a checkpoint's model and check that all of it has an elastic form.

    Args:
        settings: of the model, by name.
        groups: all groups of settings, ``cfg`` of the checkpoint.
        path: of the checkpoint, for messages.

    Raises:
        ConfigError: a part has no elastic form; it is named. CheckpointError: the settings are damaged.
    """
    args = Namespace(**settings)
    ARCH_CONFIG_REGISTRY["transformer"](args)  # what older releases did not store
    config = TransformerConfig.from_namespace(args)
    _check_task(groups, path)
    check_off(_refused(config), path)
    _check_alike(config, path)
    sides = [
        SideSizes(int(side.layers), int(side.embed_dim), int(side.ffn_embed_dim), int(side.attention_heads))
        for side in (config.encoder, config.decoder)
    ]
    for side in sides:
        check_sizes(path, *side)
    widths = {side.embed_dim // side.heads for side in sides}
    if len(widths) > 1:
        encoder, decoder = sides
        raise refuse(
            path,
            f"{encoder.layers} encoder layers with heads of {encoder.embed_dim // encoder.heads} numbers and"
            f" {decoder.layers} decoder layers with heads of {decoder.embed_dim // decoder.heads}",
            "heads of one size",
        )
    return TransformerSettings(sides[0], sides[1], widths.pop(), activation(config, path), config)


def _refused(config: Any) -> dict[str, str]:
    found = switched_on(config, _NO_FORM)
    found |= {
        f"quant_noise_{name}": value for name, value in switched_on(config.quant_noise, _NO_FORM_OF_NOISE).items()
    }
    for side in ("encoder", "decoder"):
        own = getattr(config, side)
        found |= {f"{side}_{name}": value for name, value in switched_on(own, _NO_FORM_OF_A_SIDE).items()}
    if config.decoder.normalize_before:
        found |= switched_on(config, ("no_decoder_final_norm",))
    width = int(config.decoder.embed_dim)
    for name in ("input_dim", "output_dim"):
        if int(getattr(config.decoder, name)) != width:
            found[f"decoder_{name}"] = f"{getattr(config.decoder, name)} where --decoder-embed-dim is {width}"
    return found


def _check_alike(config: Any, path: Path) -> None:
    for name in ("normalize_before", "learned_pos"):
        if bool(getattr(config.encoder, name)) != bool(getattr(config.decoder, name)):
            side = "encoder" if getattr(config.encoder, name) else "decoder"
            raise refuse(path, f"--{side}-{name.replace('_', '-')} on one side alone", "the same on both")


def _check_task(groups: Mapping[str, Any], path: Path) -> None:
    name, settings = task_in(groups)
    if not issubclass(TASK_REGISTRY.get(name, object), TranslationTask):
        raise ConfigError(f"{path} was trained with --task {name}; expected translation")
    if str(settings.get("left_pad_target", False)).lower() in ("true", "1", "y", "yes"):
        raise refuse(path, "--left-pad-target")
