"""Settings of fairseq's ``roberta``: its options, or which of its parts has no elastic form."""

from __future__ import annotations

import dataclasses
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fairseq.models import ARCH_CONFIG_REGISTRY
from fairseq.tasks import TASK_DATACLASS_REGISTRY

from fairseq_ext.elastic.refusals import ACTIVATIONS, check_off, check_sizes, readable, refuse, switched_on, task_in
from nas_core.errors import ConfigError

_NO_FORM = (
    "quant_noise_pq",
    "quant_noise_scalar",
    "spectral_norm_classification_head",
    "xformers_att_config",
    "encoder_layers_to_keep",
    "adaptive_input",
    "no_token_positional_embeddings",
)
"""Options that change what is computed, and are off by default."""
_PRUNING = ("mha_heads_to_keep", "ffn_blocks_to_remove")
"""Options of which fairseq's -1 is off."""
_TASKS = {
    "masked_lm": "masked_lm",
    "multilingual_masked_lm": "masked_lm",
    "sentence_prediction": "sentence_prediction",
}
"""Tasks by which a network may have been trained -> the one that it is opened with; of several languages, as XLM-R, the
vocabulary is the same."""


@readable
def masked_lm_settings(settings: Mapping[str, Any], task: Mapping[str, Any], path: Path) -> Namespace:
    """Read the options of a checkpoint's model and check that all of it has an elastic form.

    Args:
        settings: of the model, by name.
        task: of :func:`task_settings`.
        path: of the checkpoint, for messages.

    Raises:
        ConfigError: a part has no elastic form; it is named. CheckpointError: the settings are damaged.
    """
    args = Namespace(**settings)
    ARCH_CONFIG_REGISTRY["roberta"](args)  # what older releases did not store
    pruned = {option: value for option, value in switched_on(args, _PRUNING).items() if value != "-1"}
    check_off({**switched_on(args, _NO_FORM), **pruned}, path)
    if not args.encoder_learned_pos:
        raise refuse(path, "positions that are computed", "learned ones, as of --arch roberta*")
    for option in ("activation_fn", "pooler_activation_fn"):
        if getattr(args, option) not in ACTIVATIONS:
            shown = f"--{option.replace('_', '-')} {getattr(args, option)}"
            raise refuse(path, shown, f"one of {', '.join(ACTIVATIONS)}")
    sizes = (args.encoder_layers, args.encoder_embed_dim, args.encoder_ffn_embed_dim, args.encoder_attention_heads)
    check_sizes(path, *map(int, sizes))
    if getattr(args, "max_positions", None) is None:
        own = getattr(args, "tokens_per_sample", None)
        args.max_positions = own or task.get("tokens_per_sample") or task.get("max_positions") or 512
    args.max_positions = int(args.max_positions)
    return args


@readable
def task_settings(groups: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """The options of a checkpoint's task by name, and what it is opened with as ``_name``.

    Args:
        groups: all groups of settings, ``cfg`` of the checkpoint.
        path: of the checkpoint, for messages.

    Raises:
        ConfigError: another task. CheckpointError: the settings are damaged.
    """
    name, own = task_in(groups)
    if name not in _TASKS:
        raise ConfigError(f"{path} was trained with --task {name}; expected {', '.join(_TASKS)}")
    known = {field.name for field in dataclasses.fields(TASK_DATACLASS_REGISTRY[_TASKS[name]])}
    return {**{option: value for option, value in own.items() if option in known}, "_name": _TASKS[name]}
