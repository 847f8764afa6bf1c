"""Settings of fairseq's ``transformer_lm``: its sizes, or which of its parts has no elastic form."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

from fairseq.models import ARCH_CONFIG_REGISTRY
from fairseq.models.transformer_lm import DEFAULT_MAX_TARGET_POSITIONS, TransformerLanguageModelConfig
from fairseq.tasks import TASK_REGISTRY
from fairseq.tasks.language_modeling import LanguageModelingTask

from fairseq_ext.elastic.refusals import activation, check_off, check_sizes, readable, refuse, switched_on, task_in
from nas_core.errors import ConfigError
from nas_core.supernet.elastic.stack_space import StackSizes

_NO_FORM = (
    "adaptive_softmax_cutoff",
    "adaptive_input",
    "tie_adaptive_weights",
    "tie_adaptive_proj",
    "character_embeddings",
    "layernorm_embedding",
    "base_layers",
    "scale_attn",
    "scale_fc",
    "scale_heads",
    "scale_resids",
    "quant_noise_pq",
    "quant_noise_scalar",
    "decoder_layers_to_keep",
    "decoder_xformers_att_config",
)
"""Options that change what is computed, and are off by default."""
_TARGETS = ("self_target", "past_target")


class LanguageSettings(NamedTuple):
    """What a trained language model is like."""

    sizes: StackSizes
    activation: str
    config: Namespace
    """All options of its model."""


@readable
def language_settings(settings: Mapping[str, Any], groups: Mapping[str, Any], path: Path) -> LanguageSettings:
    """Read the settings of a checkpoint's model and check that all of it has an elastic form.

    Args:
        settings: of the model, by name.
        groups: all groups of settings, ``cfg`` of the checkpoint.
        path: of the checkpoint, for messages.

    Raises:
        ConfigError: a part has no elastic form; it is named. CheckpointError: the settings are damaged.
    """
    config = _whole(settings)
    task = _settings_of_task(groups, path)
    found = switched_on(config, _NO_FORM)
    width = int(config.decoder_embed_dim)
    for name in ("decoder_input_dim", "decoder_output_dim"):
        if int(getattr(config, name)) != width:
            found[name] = f"{getattr(config, name)} where --decoder-embed-dim is {width}"
    check_off(found, path)
    heads, layers = int(config.decoder_attention_heads), int(config.decoder_layers)
    hidden = int(config.decoder_ffn_embed_dim)
    check_sizes(path, layers, width, hidden, heads)
    asked = [
        _number(group, name) for group in (settings, task) for name in ("max_target_positions", "tokens_per_sample")
    ]
    context = next((each for each in asked if each), DEFAULT_MAX_TARGET_POSITIONS)
    sizes = StackSizes(layers, width, hidden, heads, context)
    return LanguageSettings(sizes, activation(config, path), config)


def _whole(settings: Mapping[str, Any]) -> Namespace:
    """With what older releases did not store."""
    args = Namespace(**{name: value for name, value in settings.items() if not _refers(value)})
    arch = str(settings.get("arch") or "transformer_lm")
    if arch in ARCH_CONFIG_REGISTRY:
        ARCH_CONFIG_REGISTRY[arch](args)
    for field in fields(TransformerLanguageModelConfig):
        if not hasattr(args, field.name) and not _refers(field.default):
            setattr(args, field.name, field.default)
    return args


def _refers(value: Any) -> bool:
    """Whether it stands for another group's option."""
    return isinstance(value, str) and value.startswith("${")


def _number(group: Mapping[str, Any], name: str) -> int | None:
    value = group.get(name)
    return None if value is None or _refers(value) else int(value)


def _settings_of_task(groups: Mapping[str, Any], path: Path) -> Mapping[str, Any]:
    name, settings = task_in(groups)
    if not issubclass(TASK_REGISTRY.get(name, object), LanguageModelingTask):
        raise ConfigError(f"{path} was trained with --task {name}; expected language_modeling")
    if (_number(settings, "output_dictionary_size") or -1) >= 0:
        raise refuse(path, f"--output-dictionary-size {settings['output_dictionary_size']}")
    for option in _TARGETS:
        if settings.get(option):
            raise refuse(path, f"--{option.replace('_', '-')}")
    return settings
