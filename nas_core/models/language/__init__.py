"""Decoder-only transformers for language modelling, with a kind of attention per layer."""

from typing import TYPE_CHECKING

from nas_core.lazy_names import lazy_names

if TYPE_CHECKING:
    from nas_core.models.language.costs import flops, parameters
    from nas_core.models.language.kind import language_graph
    from nas_core.models.language.net import LanguageCache, LanguageConfig, LanguageNet, LanguageSubnet
    from nas_core.models.language.workload import LanguageWorkload, LanguageWorkloadConfig

__all__ = [
    "LanguageCache",
    "LanguageConfig",
    "LanguageNet",
    "LanguageSubnet",
    "LanguageWorkload",
    "LanguageWorkloadConfig",
    "flops",
    "language_graph",
    "parameters",
]

__getattr__, __dir__ = lazy_names(__name__)
