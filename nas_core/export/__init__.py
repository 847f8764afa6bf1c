"""Export as ONNX or as ``torch.export`` programs, each checked against torch once written."""

from nas_core.export.folder import TARGETS, Written, check_out, write_export
from nas_core.export.parts import Exportable, ExportError, Part

__all__ = [
    "TARGETS",
    "ExportError",
    "Exportable",
    "Part",
    "Written",
    "check_out",
    "write_export",
]
