"""Network kinds: translation, image, language and masked language models."""

from typing import TYPE_CHECKING

from nas_core.lazy_names import lazy_names

if TYPE_CHECKING:
    from nas_core.models.kind import NETWORK_KINDS, ModelKind, OnePassKind, flops_g, kind_of, params_m

__all__ = [
    "NETWORK_KINDS",
    "ModelKind",
    "OnePassKind",
    "flops_g",
    "kind_of",
    "params_m",
]

__getattr__, __dir__ = lazy_names(__name__)
