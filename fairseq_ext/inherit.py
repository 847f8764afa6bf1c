"""Settings of the checkpoint that a training starts from: what the command leaves open is taken from there.

``fairseq-train --finetune-from-model subnet.pt`` (or ``--restore-file``) then needs no option that says what the
network in that file is like.
"""

from __future__ import annotations

import logging
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fairseq_ext.checkpoint import read_state
from fairseq_ext.options import model_arguments, space_in
from nas_core.errors import CheckpointError, NasExtError
from nas_core.space import get_space

logger = logging.getLogger(__name__)

_EXPERTS = (
    "mos",
    "mos_experts",
    "mos_router_hidden",
    "mos_router_layers",
    "mos_own_router",
    "mos_encoding",
    "mos_rank",
)
"""What an architecture's name stands for, so that it is not taken from a file, unless that is of a trained network."""
_TAKEN_OVER = (
    "taken_over",
    "embedding_scale",
    "encoder_order",
    "decoder_order",
    "layer_order",
    "kept_layers",
    "final_norm",
)
"""What follows from the trained network that a supernet was made of; none has an option."""
_SILENT = (None, False, 0, "relu", "sinusoidal")
"""Values that a log need not tell."""
_SCALES = ("linear_max_length", "linear_encoder_length")
"""What follows from the data when a training begins, and must not follow from other data when it is continued."""
_LAST = "checkpoint_last.pt"


def inherit(args: Namespace, inherited: Sequence[str]) -> None:
    """Fill in what is not given, before the architecture's defaults; nothing for a model that is read from a file.

    ``inherited`` are the options that say what the network is like. A checkpoint that cannot be read, or is of another
    model, is left to fairseq, which loads it later.
    """
    vars(args).pop("begun_from", None)
    if hasattr(args, "search_space_json"):
        return
    path = _begun_from(args)
    if path is None:
        return
    args.begun_from = str(path)
    stored = _stored(path)
    if stored is None:
        return
    continues = not getattr(args, "finetune_from_model", None) and _restored(args) == _LAST
    names = _SCALES if continues else tuple(inherited)  # all else the same command says again
    if getattr(stored, "taken_over", False):
        names = (*names, *_EXPERTS)
    taken = [name for name in names if getattr(args, name, None) is None and hasattr(stored, name)]
    for name in (*taken, *_TAKEN_OVER):
        if hasattr(stored, name):
            setattr(args, name, getattr(stored, name))
    said = [_option(name, stored) for name in taken if getattr(stored, name) not in _SILENT]
    if continues:
        return
    if getattr(args, "search_space", None) is None:
        args.search_space = space_in(stored.search_space_json).name
        args.inherited_space_json = stored.search_space_json
        said.append(f"--search-space {args.search_space}")
        _take_architecture(args, stored, said)
    elif _same_space(args.search_space, stored):
        _take_architecture(args, stored, said)
    if said:
        logger.info("taken from %s: %s", path, ", ".join(said))


def _take_architecture(args: Namespace, stored: Namespace, said: list[str]) -> None:
    if getattr(args, "subnet", None) is None and getattr(stored, "subnet_json", None):
        args.subnet_json = stored.subnet_json
        said.append("its architecture")


def _same_space(given: str, stored: Namespace) -> bool:
    try:
        return get_space(given) == space_in(stored.search_space_json)
    except NasExtError:  # what is wrong with the given one is told where it is used
        return False


def differing_options(args: Namespace, inherited: Sequence[str]) -> str:
    """The options, among ``inherited`` and those of experts, with which the checkpoint that training starts from was
    trained, and this command was not; empty if there are none, or no such checkpoint."""
    begun_from = getattr(args, "begun_from", None)
    stored = _stored(Path(begun_from)) if begun_from else None
    if stored is None:
        return ""
    static = bool(getattr(stored, "subnet_json", None))
    named = [name for name in (*inherited, *_EXPERTS) if not (static and name.startswith("mos"))]
    other = [name for name in named if hasattr(stored, name) and getattr(stored, name) != getattr(args, name, None)]
    return ", ".join(_option(name, stored) for name in other)


def _begun_from(args: Namespace) -> Path | None:
    """The checkpoint that fairseq will load, if it is there."""
    if _restored(args) != _LAST:
        candidates = [_restored(args)]
    else:
        last = Path(getattr(args, "save_dir", None) or "checkpoints") / _LAST
        candidates = [last, getattr(args, "finetune_from_model", None) or last]
    return next((path for path in map(Path, candidates) if path.is_file()), None)


def _restored(args: Namespace) -> str:
    return getattr(args, "restore_file", None) or _LAST


def _stored(path: Path) -> Namespace | None:
    try:
        return model_arguments(read_state(path, mmap=True), str(path))
    except CheckpointError:
        return None


def _option(name: str, settings: Any) -> str:
    option, value = f"--{name.replace('_', '-')}", getattr(settings, name)
    if isinstance(value, bool):
        return option if value else f"no {option}"
    return f"{option} {value}"
