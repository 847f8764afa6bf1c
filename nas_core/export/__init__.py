"""Export of models to ONNX or ``torch.export`` files, compared with PyTorch."""

from typing import TYPE_CHECKING

from nas_core.lazy_names import lazy_names

if TYPE_CHECKING:
    from nas_core.export.folder import write_export
    from nas_core.export.parts import ExportError

__all__ = [
    "ExportError",
    "write_export",
]

__getattr__, __dir__ = lazy_names(__name__)
