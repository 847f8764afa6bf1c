"""Compression of a trained network: one smaller network below a latency limit."""

from typing import TYPE_CHECKING

from nas_core.lazy_names import lazy_names

if TYPE_CHECKING:
    from nas_core.compression.pipeline import CompressConfig, compress

__all__ = [
    "CompressConfig",
    "compress",
]

__getattr__, __dir__ = lazy_names(__name__)
