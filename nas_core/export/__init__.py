"""Models that leave the project: as ONNX or as ``torch.export`` programs, each checked against torch once written.

``parts`` says what a model is made of, each kind of network in ``nas_core.models`` makes its parts, ``program`` traces
and writes them, ``check`` runs what was written, ``folder`` puts it all in one place.
"""

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
