"""Masked language models: elastic bidirectional encoders with RoBERTa's heads."""

from typing import TYPE_CHECKING

from nas_core.lazy_names import lazy_names

if TYPE_CHECKING:
    from nas_core.models.masked_lm.costs import flops, parameters
    from nas_core.models.masked_lm.hugging_face import write_bert
    from nas_core.models.masked_lm.kind import masked_lm_graph
    from nas_core.models.masked_lm.net import ClassHead, MaskedLMConfig, MaskedLMNet, Subnet
    from nas_core.models.masked_lm.workload import MaskedLMWorkload, MaskedLMWorkloadConfig

__all__ = [
    "ClassHead",
    "MaskedLMConfig",
    "MaskedLMNet",
    "MaskedLMWorkload",
    "MaskedLMWorkloadConfig",
    "Subnet",
    "flops",
    "masked_lm_graph",
    "parameters",
    "write_bert",
]

__getattr__, __dir__ = lazy_names(__name__)
