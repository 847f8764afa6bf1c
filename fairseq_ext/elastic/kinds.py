"""Models of fairseq's that can be taken over: each name under which fairseq registers one, and what opens it."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from fairseq.models import ARCH_MODEL_NAME_REGISTRY, MODEL_REGISTRY

from fairseq_ext.checkpoint import read_state
from fairseq_ext.compat import in_groups, options_in
from nas_core.errors import CheckpointError

if TYPE_CHECKING:
    from nas_core.supernet.elastic.take_over import Trained

_log = logging.getLogger(__name__)

SOURCES = {
    "transformer": "fairseq_ext.elastic.translation:open_translation",
    "transformer_lm": "fairseq_ext.elastic.language:open_language",
    "roberta": "fairseq_ext.elastic.masked_lm:open_masked_lm",
}
"""Name of ``register_model`` -> ``module:function`` of (path, content of the checkpoint, :class:`Request`), which gives
a ``Trained``, or a ``ConfigError`` that names what has no elastic form, before it builds anything."""


_LAYERDROP = ("encoder_layerdrop", "decoder_layerdrop")
"""Options of training that leave out whole layers at random, by which no output changes."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """What the user asks of a supernet around a trained network."""

    data: str | None = None
    """The data folder, if it moved since training."""
    space: str = "auto"
    """What :func:`nas_core.supernet.elastic.asked.made` takes, or the name or file of a space whose largest network is
    the trained one."""
    attention: tuple[str, ...] = ("softmax",)
    """Kinds of attention that each layer may choose from, softmax among them."""
    calibrate: int = 0
    """Batches of data on which importance is measured; 0: there need be none."""
    device: str = "cpu"
    """Where it is computed."""


def open_trained(path: Path, request: Request) -> Trained:
    """Open a checkpoint that fairseq-train wrote of one of :data:`SOURCES`.

    Raises:
        CheckpointError: it is damaged, or of another model. ConfigError: a part of the network has no elastic form.
    """
    state = in_groups(read_state(path, mmap=True))
    settings = settings_of(state, path)
    if "search_space_json" in settings:
        raise CheckpointError(f"{path} is a supernet or one of its subnets already; give a model of fairseq's own")
    name = model_name(settings)
    source = SOURCES.get(name)
    if source is None:
        raise CheckpointError(
            f"{path} was trained with --arch {settings.get('arch') or settings.get('_name')}, a model {name!r};"
            f" expected one of {', '.join(SOURCES)}, others have no elastic form"
        )
    trained: Trained = resolve_name(source)(path, state, request)
    for name in _LAYERDROP:
        if float(settings.get(name) or 0.0):
            _log.warning("--%s %s is not taken over: a supernet trains all layers of a subnet",
                         name.replace("_", "-"), settings[name])  # fmt: skip
    return trained


def settings_of(state: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """The options of a checkpoint's model by name, however fairseq stored them.

    Raises:
        CheckpointError: there are none.
    """
    config: Any = state.get("cfg")
    settings = dict(options_in(config.get("model"))) if hasattr(config, "get") else {}
    if not settings:
        raise CheckpointError(f"{path} holds no settings of its model; expected a checkpoint written by fairseq-train")
    return settings


def model_name(settings: Mapping[str, Any]) -> str:
    """The name under which fairseq registers the model of these settings."""
    arch = str(settings.get("arch") or settings.get("_name"))
    return arch if arch in MODEL_REGISTRY else str(ARCH_MODEL_NAME_REGISTRY.get(arch, arch))
