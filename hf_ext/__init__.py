"""Hugging Face plug-in: search for smaller and faster versions of a model folder written by ``save_pretrained``."""

from typing import TYPE_CHECKING

from nas_core.lazy_names import lazy_names

if TYPE_CHECKING:
    from hf_ext.network import ElasticModel
    from hf_ext.supernet import HuggingFaceSupernet
    from hf_ext.trainer import SupernetTrainer

__all__ = [
    "ElasticModel",
    "HuggingFaceSupernet",
    "SupernetTrainer",
]

__getattr__, __dir__ = lazy_names(__name__)
