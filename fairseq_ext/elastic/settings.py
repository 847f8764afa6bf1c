"""Settings of fairseq's ``transformer``, ``transformer_lm`` and ``roberta``, and unsupported options."""

from __future__ import annotations

import dataclasses
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fairseq.models import ARCH_CONFIG_REGISTRY
from fairseq.models.transformer_lm import DEFAULT_MAX_TARGET_POSITIONS, TransformerLanguageModelConfig
from fairseq.tasks import TASK_DATACLASS_REGISTRY, TASK_REGISTRY
from fairseq.tasks.language_modeling import LanguageModelingTask
from fairseq.tasks.translation import TranslationTask

from fairseq_ext.compat import options_in
from nas_core.errors import ConfigError
from nas_core.supernet.elastic.stack_space import StackSizes
from nas_core.supernet.elastic.translation_space import SideSizes

ACTIVATIONS = {
    "relu": "relu",
    "gelu": "gelu",
    "gelu_fast": "gelu_tanh",
    "gelu_accurate": "gelu_tanh",
    "tanh": "tanh",
}
"""fairseq's ``--activation-fn`` -> name in :data:`nas_core.layers.feed_forward.ACTIVATIONS`."""
_OFF_VALUES = (None, False, 0, 0.0, "", [], -1)
_UNSUPPORTED = (
    "adaptive_softmax_cutoff", "adaptive_input", "tie_adaptive_weights", "tie_adaptive_proj", "merge_src_tgt_embed",
    "no_cross_attention", "cross_self_attention", "char_inputs", "character_embeddings", "base_layers", "scale_attn",
    "scale_fc", "scale_heads", "scale_resids", "quant_noise_pq", "quant_noise_scalar",
    "spectral_norm_classification_head", "xformers_att_config", "encoder_xformers_att_config",
    "decoder_xformers_att_config", "encoder_layers_to_keep", "decoder_layers_to_keep", "mha_heads_to_keep",
    "ffn_blocks_to_remove",
)  # fmt: skip
"""Options of fairseq that supernets do not support; off by default."""
_UNSUPPORTED_BY_MODEL = {
    "transformer": ("layernorm_embedding",),
    "transformer_lm": ("layernorm_embedding",),
    "roberta": ("no_token_positional_embeddings",),
}
"""Further unsupported options, by model."""
_MASKED_LM_TASKS = {
    "masked_lm": "masked_lm",
    "multilingual_masked_lm": "masked_lm",
    "sentence_prediction": "sentence_prediction",
}
"""Task of the training -> task with which the model is loaded."""


def translation_settings(
    settings: Mapping[str, Any], groups: Mapping[str, Any], path: Path
) -> tuple[Namespace, SideSizes, SideSizes]:
    """Return the options of a ``transformer``, and the sizes of its encoder and decoder."""
    task = _task_options(groups, TranslationTask, path)
    if str(task.get("left_pad_target", False)).lower() in ("true", "1", "y", "yes"):
        raise _unsupported(path, "--left-pad-target")
    args = _options("transformer", Namespace(**settings), path)
    for option in ("normalize_before", "learned_pos"):
        values = [bool(getattr(args, f"{side}_{option}")) for side in ("encoder", "decoder")]
        if values[0] != values[1]:
            side = "encoder" if values[0] else "decoder"
            raise _unsupported(path, f"--{side}-{option.replace('_', '-')} on one side alone", "the same on both")
    if args.decoder_normalize_before and getattr(args, "no_decoder_final_norm", False):
        raise _unsupported(path, "--no-decoder-final-norm")
    encoder, decoder = (SideSizes(*_sizes(args, side, path)) for side in ("encoder", "decoder"))
    widths = [side.embed_dim // side.heads for side in (encoder, decoder)]
    if widths[0] != widths[1]:
        raise _unsupported(
            path,
            f"{encoder.layers} encoder layers with heads of {widths[0]} numbers and {decoder.layers} decoder layers"
            f" with heads of {widths[1]}",
            "heads of one size",
        )
    for side in ("source", "target"):
        if getattr(args, f"max_{side}_positions", None) is None:
            setattr(args, f"max_{side}_positions", 1024)
    return args, encoder, decoder


def language_settings(
    settings: Mapping[str, Any], groups: Mapping[str, Any], path: Path
) -> tuple[Namespace, StackSizes]:
    task = _task_options(groups, LanguageModelingTask, path)
    if int(task.get("output_dictionary_size") or -1) >= 0:
        raise _unsupported(path, f"--output-dictionary-size {task['output_dictionary_size']}")
    for option in ("self_target", "past_target"):
        if task.get(option):
            raise _unsupported(path, f"--{option.replace('_', '-')}")
    args = Namespace(**settings)
    arch = str(settings.get("arch") or "transformer_lm")
    args = _options(arch if arch in ARCH_CONFIG_REGISTRY else "transformer_lm", args, path)
    lengths = (group.get(f) for group in (settings, task) for f in ("max_target_positions", "tokens_per_sample"))
    context = next((int(length) for length in lengths if length), DEFAULT_MAX_TARGET_POSITIONS)
    return args, StackSizes(*_sizes(args, "decoder", path), context)


def masked_lm_settings(
    settings: Mapping[str, Any], task: Mapping[str, Any], path: Path
) -> tuple[Namespace, StackSizes]:
    args = _options("roberta", Namespace(**settings), path)
    if not args.encoder_learned_pos:
        raise _unsupported(path, "positions that are computed", "learned ones, as of --arch roberta*")
    if getattr(args, "max_positions", None) is None:
        length = getattr(args, "tokens_per_sample", None)
        args.max_positions = length or task.get("tokens_per_sample") or task.get("max_positions") or 512
    args.max_positions = int(args.max_positions)
    return args, StackSizes(*_sizes(args, "encoder", path), args.max_positions)


def masked_lm_task(groups: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """Return the task options of a ``roberta``; ``_name`` is the fairseq task that can load it."""
    options = options_in(groups.get("task"))
    name = str(options.get("_name"))
    if name not in _MASKED_LM_TASKS:
        raise ConfigError(f"{path} was trained with --task {name}; expected one of {', '.join(_MASKED_LM_TASKS)}")
    names = {field.name for field in dataclasses.fields(TASK_DATACLASS_REGISTRY[_MASKED_LM_TASKS[name]])}
    return {option: options[option] for option in options if option in names} | {"_name": _MASKED_LM_TASKS[name]}


def _task_options(groups: Mapping[str, Any], kind: type[Any], path: Path) -> dict[str, Any]:
    options = options_in(groups.get("task"))
    if not issubclass(TASK_REGISTRY.get(str(options.get("_name")), object), kind):
        raise ConfigError(
            f"{path} was trained with --task {options.get('_name')}; expected a task of class {kind.__name__}"
        )
    return options


def _options(arch: str, args: Namespace, path: Path) -> Namespace:
    """Fill in options that older releases of fairseq lack; raise a ConfigError for an unsupported option."""
    ARCH_CONFIG_REGISTRY[arch](args)
    model = "transformer_lm" if arch.startswith("transformer_lm") else arch
    if model == "transformer_lm":
        for field in dataclasses.fields(TransformerLanguageModelConfig):
            if not hasattr(args, field.name) and not str(field.default).startswith("${"):
                setattr(args, field.name, field.default)
    for option in (*_UNSUPPORTED, *_UNSUPPORTED_BY_MODEL[model]):
        if (value := getattr(args, option, None)) not in _OFF_VALUES:
            flag = f"--{option.replace('_', '-')}"
            raise _unsupported(path, flag if value is True else f"{flag} {value}")
    for option in ("decoder_input_dim", "decoder_output_dim") if model != "roberta" else ():
        if (width := int(getattr(args, option))) != int(args.decoder_embed_dim):
            description = f"--{option.replace('_', '-')} {width} where --decoder-embed-dim is {args.decoder_embed_dim}"
            raise _unsupported(path, description)
    for option in ("activation_fn", "pooler_activation_fn") if model == "roberta" else ("activation_fn",):
        if (name := getattr(args, option)) not in ACTIVATIONS:
            raise _unsupported(path, f"--{option.replace('_', '-')} {name}", f"one of {', '.join(ACTIVATIONS)}")
    return args


def _sizes(args: Namespace, side: str, path: Path) -> tuple[int, int, int, int]:
    names = ("layers", "embed_dim", "ffn_embed_dim", "attention_heads")
    layers, width, hidden, heads = (int(getattr(args, f"{side}_{name}")) for name in names)
    if min(layers, width, hidden, heads) < 1 or width % heads:
        description = f"{layers} layers of {width} channels, {hidden} hidden units and {heads} heads"
        raise _unsupported(path, description, "numbers above 0, and channels divisible by the number of heads")
    return layers, width, hidden, heads


def _unsupported(path: Path, feature: str, expected: str = "a network without it") -> ConfigError:
    return ConfigError(f"{path} was trained with {feature}, which supernets do not support; expected {expected}")
