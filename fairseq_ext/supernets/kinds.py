"""What opens a checkpoint of this plug-in, by its model."""

from __future__ import annotations

from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from fairseq.models import ARCH_MODEL_NAME_REGISTRY

from fairseq_ext.checkpoint import read_state
from fairseq_ext.options import model_arguments
from nas_core.supernet.host import Supernet

__all__ = ["SUPERNETS", "opened"]

SUPERNETS = {
    "mos_transformer": "fairseq_ext.supernets.translation:TranslationSupernet",
    "mos_transformer_lm": "fairseq_ext.supernets.language:LanguageSupernet",
    "mos_roberta": "fairseq_ext.supernets.masked_lm:MaskedLMSupernet",
}
"""Name of ``register_model`` -> ``module:class`` of (path, options of ``Host.open``)."""


def opened(path: Path, **options: Any) -> Supernet:
    """The supernet of a checkpoint; options as of :class:`nas_core.supernet.host.Host`.

    Raises:
        CheckpointError: the file is damaged or of another model. Others as the classes say.
    """
    arch = str(model_arguments(read_state(path, mmap=True), str(path)).arch)
    kind = resolve_name(SUPERNETS[ARCH_MODEL_NAME_REGISTRY.get(arch, "mos_transformer")])
    supernet: Supernet = kind(path, **options)
    return supernet
