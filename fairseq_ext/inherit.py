"""Options that ``fairseq-train`` reads from the checkpoint of ``--finetune-from-model`` or ``--restore-file``."""

from __future__ import annotations

import logging
from argparse import Namespace
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from fairseq_ext.checkpoint import model_arguments, read_state, stored_space
from nas_core.errors import CheckpointError, NasExtError
from nas_core.space import get_space

logger = logging.getLogger(__name__)

_CONVERSION_SETTINGS = (
    "converted",
    "embedding_scale",
    "encoder_order",
    "decoder_order",
    "layer_order",
    "final_norm",
)
"""Settings of a converted network that have no command-line option."""
_UNLOGGED = (None, False, 0, "relu", "sinusoidal")
"""Values that are not logged."""
_SCALES = ("linear_max_length", "linear_encoder_length")
"""Settings that depend on the data, and must not change when training is resumed."""
_LAST = "checkpoint_last.pt"


def inherit(args: Namespace, inherited: Sequence[str]) -> None:
    """Set options in ``args`` that are not given to those stored in the initial checkpoint.

    Args:
        inherited: names of the options.
    """
    if hasattr(args, "search_space_json") or (path := _first_checkpoint(args)) is None:
        return
    try:
        stored = model_arguments(read_state(path, mmap=True), str(path))
    except CheckpointError:
        return
    resuming = not getattr(args, "finetune_from_model", None) and _restore_file(args) == _LAST
    names = _SCALES if resuming else tuple(inherited)  # the repeated command gives all others
    if getattr(stored, "converted", False):
        names = (*names, "mos")
    inherited_names = [name for name in names if getattr(args, name, None) is None and hasattr(stored, name)]
    vars(args).update(
        {name: getattr(stored, name) for name in (*inherited_names, *_CONVERSION_SETTINGS) if hasattr(stored, name)}
    )
    if resuming:
        return
    messages = [_option(name, stored) for name in inherited_names if getattr(stored, name) not in _UNLOGGED]
    same_space = getattr(args, "search_space", None) is None
    if same_space:
        args.search_space = stored_space(stored.search_space_json).name
        args.inherited_space_json = stored.search_space_json
        messages.append(f"--search-space {args.search_space}")
    else:
        with suppress(NasExtError):  # reported where the space is used
            same_space = get_space(args.search_space) == stored_space(stored.search_space_json)
    if same_space and getattr(args, "subnet", None) is None and getattr(stored, "subnet_json", None):
        args.subnet_json = stored.subnet_json
        messages.append("its architecture")
    if messages:
        logger.info("options inherited from %s: %s", path, ", ".join(messages))


def _first_checkpoint(args: Namespace) -> Path | None:
    candidates = [_restore_file(args)]
    if candidates[0] == _LAST:
        last = Path(getattr(args, "save_dir", None) or "checkpoints") / _LAST
        candidates = [last, getattr(args, "finetune_from_model", None) or last]
    return next((path for path in map(Path, candidates) if path.is_file()), None)


def _restore_file(args: Namespace) -> Any:
    return getattr(args, "restore_file", None) or _LAST


def _option(name: str, settings: Any) -> str:
    option, value = f"--{name.replace('_', '-')}", getattr(settings, name)
    if isinstance(value, bool):
        return option if value else f"no {option}"
    return f"{option} {value}"
